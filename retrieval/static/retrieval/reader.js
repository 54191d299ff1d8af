// A browser that is busy while the page arrives may stay at its top: the passage is what was asked for.
addEventListener("load", () => {
  if (location.hash === "#passage") document.getElementById("passage")?.scrollIntoView();
});
