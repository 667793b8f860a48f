// The units of the model: what the page shows of numbers that are in SI inside.

// A function from an SI unit to the text and the factor of the unit that is shown.
export function shownIn(scene) {
  return (unit) => {
    const [text, factor] = scene.units?.[unit] ?? [unit, 1];
    return { text, factor };
  };
}
