// The address, its history and the browser's storage are conveniences, which a frame or a setting of
// the browser may refuse: then nothing else stops.

/** What `act` gives, or else, where the browser refuses it, `otherwise`. */
export function attempt(act, otherwise = null) {
  try {
    return act();
  } catch {
    return otherwise;
  }
}
