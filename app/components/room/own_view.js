// What a student looked at before the room led the page elsewhere.

import { attempt } from "../shared/attempt.js";

const NAME = "headlight own view";

export const keepOwnView = (address) => attempt(() => sessionStorage.setItem(NAME, address));

export const ownView = () => attempt(() => sessionStorage.getItem(NAME)) ?? "";
