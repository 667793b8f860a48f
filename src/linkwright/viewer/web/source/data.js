// The scene that the page carries: JSON, with arrays as base64.

export function readScene() {
  const scene = JSON.parse(document.getElementById("scene").textContent);
  if (scene.format !== 1) throw new Error(`This page holds a scene of format ${scene.format}; format 1 is understood.`);
  return scene;
}

function bytes(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const found = new Uint8Array(letters.length);
  for (let k = 0; k < letters.length; k++) found[k] = letters.charCodeAt(k);
  return found;
}

export const floats = (text) => new Float32Array(bytes(text).buffer);
export const doubles = (text) => new Float64Array(bytes(text).buffer);
export const counts = (text) => new Uint32Array(bytes(text).buffer);
