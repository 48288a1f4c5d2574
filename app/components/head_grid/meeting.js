// The grid has two mounts, so two scripts that cannot import one another: here they meet. It
// outlives both, as the grid does when another page is shown.

export const meeting = (globalThis.headlight ??= {});
