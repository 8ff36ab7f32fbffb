/** DOM helpers. Strings become text nodes and attributes, never markup. */

/**
 * Create an HTML element with properties (or attributes, where there is no such property) and children.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Partial<HTMLElementTagNameMap[Tag]> & {[attribute: string]: unknown}} [properties]
 * @param {...(Node|string)} children
 */
export function createElement(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (name in element) Object.assign(element, { [name]: value });
    else element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

/**
 * Create an SVG element with attributes and children.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Object<string, string|number>} attributes
 * @param {...(Node|string)} children
 */
export function createSvgElement(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}
