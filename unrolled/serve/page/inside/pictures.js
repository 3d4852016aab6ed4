// The answer to a question: its reading and its pictures as SVG, each of which can be downloaded.

import {asFile, bars, heat, line, short, ticks} from "../draw.js";
import {drawn, fill, make} from "../make.js";
import {drawing} from "../play/pad.js";
import {table} from "../play/results.js";
import {seen} from "../play/tokens.js";

const LABELLED = 60;  // points with a word beside them

export function drawAnswer(host, answer, name, api) {
  fill(host, make("p", {class: "reading"}, answer.reading));
  answer.pictures.forEach((picture, k) => {
    const place = make("div", {class: "wide"});
    const figure = make("figure", {class: "picture"}, make("figcaption", {}, make("strong", {}, picture.title)), place);
    host.append(figure);
    (KINDS[picture.kind] || (() => {}))(place, picture);
    if (place.querySelector("svg") && picture.kind !== "tokens") figure.querySelector("figcaption").append(make("button", {type: "button",
      onclick: () => api.save(asFile(place.querySelector("svg")), `${name}-${k + 1}.svg`)}, "Download SVG",
    make("span", {class: "unseen"}, ` of ${picture.title}`)));
    if (picture.alt) figure.append(make("p", {class: "hint"}, picture.alt));
  });
}

const KINDS = {plot, heatmap, bars: barred, tokens: coloured, table: tabled, texts, images, drawings, sounds};

const log = (value) => (value > 0 ? Math.log10(value) : NaN);

function plot(place, picture) {
  const up = picture.log_y ? log : (value) => value, across = picture.log_x ? log : (value) => value;
  const points = (each) => each.x.map((x, k) => [across(x), each.y[k] === null ? NaN : up(each.y[k])]);
  const labels = {title: picture.title, description: picture.alt, x: picture.log_x ? `log10 of ${picture.x_label}` : picture.x_label,
    y: picture.log_y ? `log10 of ${picture.y_label}` : picture.y_label};
  if (picture.series.every((each) => each.style === "points")) return scattered(place, picture, points, labels);
  const series = picture.series.map((each) => ({name: each.name, dashed: each.style === "dashed", points: each.style === "band" ? [] : points(each),
    band: each.low ? each.x.map((x, k) => [across(x), up(each.low[k]), up(each.high[k])]).filter((row) => row.every(Number.isFinite)) : null}));
  const named = new Map([...(picture.x_ticks || []).map(({at, name}) => [at, name]),
    ...(picture.series[0].labels || []).map((name, k) => [picture.series[0].x[k], seen(name)])]);
  return line(place, series, {...labels, ...(named.size ? {xTicks: (x) => named.get(x) ?? ""} : {})});
}

// Points alone, with their words; colours by series.
function scattered(place, picture, points, labels) {
  const width = Math.max(place.clientWidth || 640, 280), height = Math.min(width * 0.7, 460), edge = 40;
  const all = picture.series.flatMap(points).filter((point) => point.every(Number.isFinite));
  const [x0, x1, y0, y1] = [Math.min, Math.max].flatMap((pick) => [pick(...all.map(([x]) => x)), pick(...all.map(([, y]) => y))]).reduce(
    (found, value, k) => { found[[0, 2, 1, 3][k]] = value; return found; }, []);
  const x = (value) => edge + ((value - x0) / (x1 - x0 || 1)) * (width - 2 * edge);
  const y = (value) => height - edge - ((value - y0) / (y1 - y0 || 1)) * (height - 2 * edge);
  const grid = ticks(y0, y1, 4).map((value) => [drawn("line", {class: "grid", x1: edge, x2: width - edge, y1: y(value), y2: y(value)}),
    drawn("text", {x: edge - 4, y: y(value) + 4, "text-anchor": "end"}, short(value))]);
  const marks = picture.series.map((each, number) => points(each).map((point, k) => {
    if (!point.every(Number.isFinite)) return null;
    const word = each.labels ? seen(each.labels[k]) : null;
    return [drawn("circle", {class: `mark f${number % 8}`, cx: x(point[0]), cy: y(point[1]), r: 3}, drawn("title", {}, word || point.map(short).join(", "))),
      word !== null && each.x.length <= LABELLED ? drawn("text", {x: x(point[0]) + 5, y: y(point[1]) - 4}, word) : null];
  }));
  fill(place, drawn("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": labels.title}, drawn("title", {}, labels.title),
    drawn("desc", {}, labels.description), grid, marks, drawn("text", {x: width - edge, y: height - 8, "text-anchor": "end"}, labels.x),
    drawn("text", {x: 0, y: 14}, labels.y)));
}

function heatmap(place, picture) {
  heat(place, picture.values.map((row) => row.map((value) => (value === null ? NaN : picture.scale === "log" ? log(value) : value))), {title: picture.title,
    description: picture.alt, rows: picture.rows.length ? picture.rows.map(seen) : null, columns: picture.columns.length ? picture.columns.map(seen) : null,
    ...(picture.scale === "log" ? {from: -8} : {from: picture.low ?? undefined, to: picture.high ?? undefined})});
}

function barred(place, picture) {
  bars(place, picture.names.map((name, k) => ({label: seen(name), value: picture.values[k], low: picture.low && picture.low[k], high: picture.high && picture.high[k]})),
    {title: picture.title, description: picture.alt});
}

function coloured(place, picture) {
  const size = Math.max(Math.abs(picture.high ?? 0), Math.abs(picture.low ?? 0), ...picture.values.map((value) => Math.abs(value ?? 0))) || 1;
  place.append(make("p", {class: "tokens"}, picture.tokens.map((token, k) => {
    const found = make("span", {class: "token", title: picture.hints[k]}, token.replaceAll("\n", "↵\n"));
    found.style.setProperty("--heat", Math.min(Math.max(picture.values[k] ?? 0, 0) / size, 1).toFixed(3));
    return found;
  })));
}

function tabled(place, picture) {
  place.append(table(picture));
}

function texts(place, picture) {
  picture.texts.forEach((text, k) => place.append(make("h4", {}, picture.captions[k] || ""), make("pre", {}, text)));
}

function images(place, picture) {
  place.append(make("div", {class: "columns"}, picture.images.map((src, k) => make("figure", {}, src ? make("img", {class: "pixels", src,
    alt: picture.captions[k] || picture.title}) : null, make("figcaption", {}, picture.captions[k] || "")))));
}

function drawings(place, picture) {
  place.append(make("div", {class: "columns"}, picture.drawings.map((strokes, k) => make("figure", {}, drawing(strokes, picture.captions[k] || picture.title),
    make("figcaption", {}, picture.captions[k] || "")))));
}

function sounds(place, picture) {
  picture.sounds.forEach((src, k) => place.append(make("figure", {}, make("audio", {controls: true, src, "aria-label": picture.captions[k] || picture.title}),
    make("figcaption", {}, picture.captions[k] || ""))));
}
