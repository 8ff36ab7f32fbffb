/** Printing: a page is printed in the light theme, since browsers leave backgrounds out. */

/**
 * Draw the page in the light theme while it is printed.
 * @param {{isPrinting: boolean}} scene
 * @param {() => void} render
 * @param {AbortSignal} signal
 */
export function printInLightTheme(scene, render, signal) {
  const { dataset } = document.documentElement;
  let theme = dataset.theme;
  addEventListener("beforeprint", () => {
    theme = dataset.theme;
    dataset.theme = "light";
    scene.isPrinting = true;
    render();
  }, { signal });
  addEventListener("afterprint", () => {
    if (theme) dataset.theme = theme;
    else delete dataset.theme;
    scene.isPrinting = false;
    render();
  }, { signal });
}
