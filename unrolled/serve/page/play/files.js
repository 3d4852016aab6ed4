// Images and sounds of the user: decoded by the browser and sent as data, never as a name.

const MOST_SAMPLES = 20000;  // entries of a list that a server takes by default
const MOST_PIXELS = 4096;

async function pixels(source, width, height) {
  const bitmap = await createImageBitmap(source);
  const canvas = document.createElement("canvas");
  canvas.width = width || bitmap.width;
  canvas.height = height || bitmap.height;
  const pen = canvas.getContext("2d", {willReadFrequently: true});
  pen.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return {canvas, data: pen.getImageData(0, 0, canvas.width, canvas.height).data};
}

// Brightness [H][W] between 0 and 1, of a picked image at the size that the run reads.
export async function brightness(file, width, height) {
  const {data} = await pixels(file, width, height);
  return Array.from({length: height}, (_, i) => Array.from({length: width}, (__, j) => {
    const at = 4 * (i * width + j);
    return Number(((0.299 * data[at] + 0.587 * data[at + 1] + 0.114 * data[at + 2]) / 255).toFixed(4));
  }));
}

// A picked image as a PNG in a data address, at the size of the example.
export async function asPng(file, example) {
  const like = new Image();
  like.src = example;
  await like.decode();
  if (like.naturalWidth * like.naturalHeight > MOST_PIXELS ** 2) throw new Error("the image is too large");
  return (await pixels(file, like.naturalWidth, like.naturalHeight)).canvas.toDataURL("image/png");
}

// Samples of a picked sound between -1 and 1, one channel at the rate of the run; its end, where it is long.
export async function samples(file, rate) {
  const heard = await new OfflineAudioContext(1, 1, 48000).decodeAudioData(await file.arrayBuffer());
  const length = Math.max(1, Math.round(heard.duration * rate));
  const channel = heard.getChannelData(0), step = heard.length / length;
  const all = Array.from({length}, (_, k) => Number(channel[Math.min(Math.floor(k * step), heard.length - 1)].toFixed(5)));
  return all.slice(-MOST_SAMPLES);
}

// Samples as the address of a .wav file that the page can play.
export function wav(values, rate) {
  const view = new DataView(new ArrayBuffer(44 + 2 * values.length));
  const word = (at, text) => [...text].forEach((letter, k) => view.setUint8(at + k, letter.charCodeAt(0)));
  word(0, "RIFF"); word(8, "WAVE"); word(12, "fmt "); word(36, "data");
  view.setUint32(4, 36 + 2 * values.length, true);
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, 2 * rate, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  view.setUint32(40, 2 * values.length, true);
  values.forEach((value, k) => view.setInt16(44 + 2 * k, Math.round(32767 * Math.min(Math.max(value, -1), 1)), true));
  return URL.createObjectURL(new Blob([view], {type: "audio/wav"}));
}

// The values of an image [H][W], between 0 and 255, as a canvas.
export function picture(rows, title, most = 255) {
  const canvas = document.createElement("canvas");
  canvas.width = rows[0].length;
  canvas.height = rows.length;
  canvas.className = "pixels";
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", title);
  const pen = canvas.getContext("2d"), image = pen.createImageData(canvas.width, canvas.height);
  rows.flat().forEach((value, k) => {
    const grey = Math.round((255 * value) / most);
    image.data.set([grey, grey, grey, 255], 4 * k);
  });
  pen.putImageData(image, 0, 0);
  return canvas;
}
