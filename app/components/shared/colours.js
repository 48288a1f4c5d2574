// Scales of colours. Their stops, "#rrggbb" and evenly spaced, come from theme.py.

/** The stops of a scale that may have others in the dark, by the colour in which a page writes. */
export function stopsOf(palette, ink) {
  if (Array.isArray(palette)) return palette;
  return palette[isLight(ink.match(/[\d.]+/g).map(Number)) ? "dark" : "light"];
}

/** The colour [red, green, blue] at a share of 0 to 1 of the scale. */
export function ramp(palette) {
  const stops = palette.map((hex) =>
    [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return (share) => {
    const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
    const [low, high] = [stops[Math.floor(place)], stops[Math.ceil(place)]];
    return low.map((value, channel) => value + (place % 1) * (high[channel] - value));
  };
}

/** 256 colours of a scale, as the pixels of a little-endian machine. */
export function pixelColours(palette) {
  const colour = ramp(palette);
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const [red, green, blue] = colour(i / 255).map(Math.round);
    return (255 << 24) | (blue << 16) | (green << 8) | red;
  });
}

/** Whether black can be read on a colour, rather than white. */
export const isLight = ([red, green, blue]) => 0.3 * red + 0.59 * green + 0.11 * blue > 128;
