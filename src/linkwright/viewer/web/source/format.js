// Numbers for people.

// So many significant digits, with a true minus sign; very large and very small ones with a power of ten.
export function number(x, digits = 4) {
  if (!Number.isFinite(x)) return "–";
  const size = Math.abs(x);
  if (size < 1e-12) return "0";
  let text;
  if (size >= 1e5 || size < 1e-3) text = x.toExponential(Math.max(0, digits - 2)).replace("e+", "e");
  else text = x.toPrecision(digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
  return text.replaceAll("-", "−");
}

// A number with a fixed count of decimals that suits a range.
export function decimals(range) {
  return range > 0 ? Math.min(9, Math.max(0, Math.ceil(2.3 - Math.log10(range)))) : 2;
}

// 1, 2 or 5 times a power of ten, for about so many steps in a range.
export function niceStep(range, steps) {
  const raw = range / Math.max(1, steps);
  const power = 10 ** Math.floor(Math.log10(raw));
  const part = raw / power;
  return power * (part <= 1.001 ? 1 : part <= 2.001 ? 2 : part <= 5.001 ? 5 : 10);
}

// The ticks of an axis, each with a text of as many decimals as the step needs.
export function ticks(low, high, steps) {
  const step = niceStep(high - low, steps);
  const size = Math.max(Math.abs(low), Math.abs(high));
  const power = size >= 1e5 || size < 1e-2 ? Math.floor(Math.log10(size)) : 0;
  const places = Math.max(0, -Math.floor(Math.log10(step / 10 ** power) + 1e-9));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
    const value = k * step;
    let text = (value / 10 ** power).toFixed(Math.min(places, 12));
    if (power && k) text += `e${power}`;
    found.push({ value, text: k === 0 ? "0" : text.replaceAll("-", "−") });
  }
  return found;
}
