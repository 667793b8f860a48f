// Light or dark, as the reader's system says, and the colours that the 3D view takes from it.

const dark = window.matchMedia("(prefers-color-scheme: dark)");

export function theme() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim();
  return { dark: dark.matches, x: color("--x"), y: color("--y"), z: color("--z"), ink: color("--ink") };
}

export function onTheme(action) {
  dark.addEventListener("change", action);
}
