// Scales of colours. Their stops, "#rrggbb" and evenly spaced, come from theme.py.

const DARK = "#000";

/** "light" or "dark": a page, by the colour in which it writes. */
export const schemeOf = (ink) => (inkOn(ink.match(/[\d.]+/g).map(Number)) === DARK ? "dark" : "light");

/** The stops of a scale that may have others in the dark. */
export const stopsOf = (palette, ink) => (Array.isArray(palette) ? palette : palette[schemeOf(ink)]);

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

/** The ink, black or white, that can be read better on a colour [red, green, blue]: at least 4.5 : 1.
 * theme.py has the same. */
export function inkOn(colour) {
  const [red, green, blue] = colour.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? DARK : "#fff";
}
