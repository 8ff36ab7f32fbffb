/** Soon. */
import { element } from "../pictures/controls.js";
export function make() { return { element: element("p", {}, "soon") }; }
