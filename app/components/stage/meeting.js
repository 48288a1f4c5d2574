// The stage has several mounts, so several scripts that cannot import one another: here they meet. It
// outlives them, as the stage does when another page is shown. `mounts` counts for whoever measures.

export const meeting = (globalThis.headlightStage ??= { mounts: 0, places: 0 });

/** Does so once the engine is there: a small script may come before the large one. */
export function once(act) {
  if (meeting.engine) act(meeting.engine);
  else setTimeout(() => once(act), 5);
}

export const bytesOf = (data) => (data instanceof ArrayBuffer ? new Uint8Array(data) : data);
