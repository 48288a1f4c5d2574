// What a student looked at before the room led the page elsewhere.

const NAME = "headlight own view";

export const keepOwnView = (address) => {
  try {
    sessionStorage.setItem(NAME, address);
  } catch {
    console.info("This browser keeps no view.");
  }
};

export const ownView = () => {
  try {
    return sessionStorage.getItem(NAME) ?? "";
  } catch {
    return "";
  }
};
