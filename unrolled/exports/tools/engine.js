"use strict";
// Tensors and the operations of exported programs. A tensor is {data, shape, type}, row by row, and is never changed.

const ARRAYS = {float32: Float32Array, float64: Float64Array, int64: Float64Array, int32: Float64Array, bool: Uint8Array};
const RANK = {bool: 0, int32: 1, int64: 2, float32: 3, float64: 4};

const count = shape => shape.reduce((n, size) => n * size, 1);
const tensor = (data, shape, type) => ({data, shape, type});
const isTensor = value => value !== null && typeof value === "object" && "shape" in value;
const empty = (shape, type) => tensor(new ARRAYS[type](count(shape)), shape, type);
const filled = (shape, value, type) => { const y = empty(shape, type); y.data.fill(value); return y; };
const typeOfNumber = value => typeof value === "boolean" ? "bool" : Number.isInteger(value) ? "int64" : "float32";
const axisOf = (x, axis) => axis < 0 ? axis + x.shape.length : axis;
const reshaped = (x, shape) => tensor(x.data, shape, x.type);
const cast = (x, type) => x.type === type ? x : tensor(type === "bool" ? Uint8Array.from(x.data, Boolean)
  : type.startsWith("int") ? ARRAYS[type].from(x.data, Math.trunc) : ARRAYS[type].from(x.data), x.shape, type);

function promoted(a, b) {
  if (!isTensor(a) && !isTensor(b)) return typeOfNumber(a);
  if (!isTensor(a)) return promoted(b, a);
  if (isTensor(b)) return RANK[a.type] >= RANK[b.type] ? a.type : b.type;
  const type = typeOfNumber(b);
  return RANK[type] > RANK[a.type] && !(a.type === "int64" && type === "int64") ? type : a.type;
}

function broadcast(...shapes) {
  const rank = Math.max(...shapes.map(shape => shape.length)), out = new Array(rank).fill(1);
  for (const shape of shapes) shape.forEach((size, i) => {
    const at = rank - shape.length + i;
    if (size !== 1) out[at] = size;
  });
  return out;
}

function strides(shape, out) {  // of a tensor that is read as if it had the shape `out`
  const found = new Array(out.length).fill(0);
  for (let i = shape.length - 1, step = 1; i >= 0; step *= shape[i], i--)
    found[out.length - shape.length + i] = shape[i] === 1 ? 0 : step;
  return found;
}

function paired(a, b, f, type) {  // f of each pair of elements
  type = type || promoted(a, b);
  if (!isTensor(a)) a = filled([], a, "float64");
  if (!isTensor(b)) b = filled([], b, "float64");
  const shape = broadcast(a.shape, b.shape), y = empty(shape, type), A = a.data, B = b.data, Y = y.data, n = Y.length;
  if (A.length === n && B.length === n) { for (let i = 0; i < n; i++) Y[i] = f(A[i], B[i]); return y; }
  if (A.length === n && B.length === 1) { const v = B[0]; for (let i = 0; i < n; i++) Y[i] = f(A[i], v); return y; }
  const sa = strides(a.shape, shape), sb = strides(b.shape, shape), at = new Array(shape.length).fill(0);
  for (let i = 0, ia = 0, ib = 0; i < n; i++) {
    Y[i] = f(A[ia], B[ib]);
    for (let d = shape.length - 1; d >= 0; d--) {
      ia += sa[d]; ib += sb[d];
      if (++at[d] < shape[d]) break;
      ia -= sa[d] * shape[d]; ib -= sb[d] * shape[d]; at[d] = 0;
    }
  }
  return y;
}

function each(x, f, type) {
  const y = empty(x.shape, type || x.type), X = x.data, Y = y.data;
  for (let i = 0; i < X.length; i++) Y[i] = f(X[i]);
  return y;
}

function moved(x, shape, step, start = 0) {  // a copy of shape `shape`, whose axes advance in x by `step`
  const y = empty(shape, x.type), X = x.data, Y = y.data, n = Y.length, at = new Array(shape.length).fill(0);
  for (let i = 0, from = start; i < n; i++) {
    Y[i] = X[from];
    for (let d = shape.length - 1; d >= 0; d--) {
      from += step[d];
      if (++at[d] < shape[d]) break;
      from -= step[d] * shape[d]; at[d] = 0;
    }
  }
  return y;
}

const expanded = (x, shape) => moved(x, shape, strides(x.shape, shape));

function expand(x, sizes) {
  const before = sizes.length - x.shape.length;
  return expanded(x, sizes.map((size, i) => size === -1 ? x.shape[i - before] : size));
}

function permuted(x, order) {
  const own = new Array(x.shape.length);
  for (let i = x.shape.length - 1, step = 1; i >= 0; step *= x.shape[i], i--) own[i] = step;
  return moved(x, order.map(axis => x.shape[axis]), order.map(axis => own[axis]));
}

function swapped(x, a, b) {
  a = axisOf(x, a); b = axisOf(x, b);
  if (a === b) return x;
  const shape = x.shape.slice(), order = shape.map((_, i) => i);
  [order[a], order[b]] = [b, a];
  [shape[a], shape[b]] = [shape[b], shape[a]];
  const [low, high] = a < b ? [a, b] : [b, a];  // axes of size 1 move for nothing
  if (count(x.shape.slice(low, high)) === 1 || count(x.shape.slice(low + 1, high + 1)) === 1) return reshaped(x, shape);
  return permuted(x, order);
}

function part(x, axis, start, end, step = 1) {
  axis = axisOf(x, axis);
  const size = x.shape[axis], clamp = at => Math.min(Math.max(at < 0 ? at + size : at, 0), size);
  start = clamp(start === null ? 0 : start); end = clamp(end === null ? size : end);
  const n = Math.max(Math.ceil((end - start) / step), 0), shape = x.shape.slice();
  if (n === size && step === 1) return x;
  shape[axis] = n;
  const outer = count(x.shape.slice(0, axis)), inner = count(x.shape.slice(axis + 1)), y = empty(shape, x.type);
  for (let o = 0, to = 0; o < outer; o++)
    for (let i = 0; i < n; i++, to += inner) {
      const from = (o * size + start + i * step) * inner;
      y.data.set(x.data.subarray(from, from + inner), to);
    }
  return y;
}

function cut(x, sizes, axis) {
  let start = 0;
  return sizes.map(size => part(x, axis, start, start += size));
}

function cat(xs, axis) {
  const wide = xs.filter(x => x.shape.length > 1 || x.shape[0] !== 0), first = wide[0];
  axis = axisOf(first, axis);
  const shape = first.shape.slice(), type = wide.map(x => x.type).reduce((a, b) => RANK[a] >= RANK[b] ? a : b);
  shape[axis] = wide.reduce((n, x) => n + x.shape[axis], 0);
  const y = empty(shape, type), outer = count(shape.slice(0, axis)), inner = count(shape.slice(axis + 1));
  for (let o = 0, to = 0; o < outer; o++)
    for (const x of wide) {
      const n = x.shape[axis] * inner;
      y.data.set(x.data.subarray(o * n, (o + 1) * n), to);
      to += n;
    }
  return y;
}

function select(x, axis, index) {
  axis = axisOf(x, axis);
  const at = index < 0 ? index + x.shape[axis] : index;
  return reshaped(part(x, axis, at, at + 1), x.shape.filter((_, i) => i !== axis));
}

function viewed(x, sizes) {
  const known = sizes.reduce((n, size) => size === -1 ? n : n * size, 1);
  return reshaped(x, sizes.map(size => size === -1 ? x.data.length / known : size));
}

function reduced(x, axes, keep, start, f, type) {  // f(sum so far, element)
  const all = axes === null || axes === undefined || axes.length === 0;
  const gone = new Set(all ? x.shape.map((_, i) => i) : [].concat(axes).map(axis => axisOf(x, axis)));
  const shape = x.shape.map((size, i) => gone.has(i) ? 1 : size), y = filled(shape, start, type || x.type);
  const step = strides(shape, x.shape), at = new Array(shape.length).fill(0);
  const Y = Float64Array.from(y.data);
  for (let i = 0, to = 0; i < x.data.length; i++) {
    Y[to] = f(Y[to], x.data[i]);
    for (let d = shape.length - 1; d >= 0; d--) {
      to += step[d];
      if (++at[d] < x.shape[d]) break;
      to -= step[d] * x.shape[d]; at[d] = 0;
    }
  }
  y.data.set(Y);
  return keep ? y : reshaped(y, shape.filter((_, i) => !gone.has(i)));
}

function linear(x, W, b) {
  const D = W.shape[1], N = W.shape[0], rows = x.data.length / D, y = empty([...x.shape.slice(0, -1), N], "float32");
  const X = x.data, w = W.data, Y = y.data, B = b ? b.data : null;
  for (let r = 0; r < rows; r++) {
    const x0 = r * D, y0 = r * N;
    let n = 0;
    for (; n + 4 <= N; n += 4) {
      let a = 0, c = 0, e = 0, g = 0, p = n * D, q = p + D, s = q + D, t = s + D;
      for (let d = 0; d < D; d++) {
        const v = X[x0 + d];
        a += v * w[p + d]; c += v * w[q + d]; e += v * w[s + d]; g += v * w[t + d];
      }
      Y[y0 + n] = a; Y[y0 + n + 1] = c; Y[y0 + n + 2] = e; Y[y0 + n + 3] = g;
    }
    for (; n < N; n++) {
      let a = 0;
      for (let d = 0, p = n * D; d < D; d++) a += X[x0 + d] * w[p + d];
      Y[y0 + n] = a;
    }
    if (B) for (let i = 0; i < N; i++) Y[y0 + i] += B[i];
  }
  return y;
}

function matmul(a, b) {
  const vector = a.shape.length === 1, single = b.shape.length === 1;
  if (vector) a = reshaped(a, [1, ...a.shape]);
  if (single) b = reshaped(b, [...b.shape, 1]);
  const [M, K] = a.shape.slice(-2), N = b.shape[b.shape.length - 1];
  const lead = broadcast(a.shape.slice(0, -2), b.shape.slice(0, -2)), n = count(lead);
  if (count(a.shape) !== n * M * K) a = expanded(a, [...lead, M, K]);
  if (count(b.shape) !== n * K * N) b = expanded(b, [...lead, K, N]);
  const y = empty([...lead, M, N], "float32"), A = a.data, B = b.data, sums = new Float64Array(N);
  for (let i = 0; i < n; i++)
    for (let m = 0; m < M; m++) {
      sums.fill(0);
      for (let k = 0; k < K; k++) {
        const v = A[(i * M + m) * K + k], from = (i * K + k) * N;
        for (let j = 0; j < N; j++) sums[j] += v * B[from + j];
      }
      y.data.set(sums, (i * M + m) * N);
    }
  return reshaped(y, [...lead, ...(vector ? [] : [M]), ...(single ? [] : [N])]);
}

function softmax(x, axis, log = false) {
  axis = axisOf(x, axis);
  const size = x.shape[axis], inner = count(x.shape.slice(axis + 1)), outer = count(x.shape.slice(0, axis));
  const y = empty(x.shape, x.type), X = x.data, Y = y.data;
  for (let o = 0; o < outer; o++)
    for (let i = 0; i < inner; i++) {
      const first = o * size * inner + i;
      let most = -Infinity, total = 0;
      for (let s = 0; s < size; s++) most = Math.max(most, X[first + s * inner]);
      for (let s = 0; s < size; s++) total += Math.exp(X[first + s * inner] - most);
      for (let s = 0; s < size; s++) {
        const at = first + s * inner;
        Y[at] = log ? X[at] - most - Math.log(total) : Math.exp(X[at] - most) / total;
      }
    }
  return y;
}

function attention(q, k, v, mask, dropout, causal, scale) {
  const [B, H, T, m] = q.shape, S = k.shape[2], width = v.shape[3], y = empty([B, H, T, width], "float32");
  const admitted = mask ? expanded(mask, [B, H, T, S]).data : null, hard = mask && mask.type === "bool";
  const s = new Float64Array(S), sums = new Float64Array(width), by = scale === null ? 1 / Math.sqrt(m) : scale;
  for (let h = 0; h < B * H; h++)
    for (let t = 0; t < T; t++) {
      let most = -Infinity, total = 0;
      for (let i = 0; i < S; i++) {
        const entry = admitted ? admitted[(h * T + t) * S + i] : 0;
        let a = 0;
        for (let d = 0, p = (h * T + t) * m, r = (h * S + i) * m; d < m; d++) a += q.data[p + d] * k.data[r + d];
        s[i] = (hard && !entry) || (causal && i > t) ? -Infinity : a * by + (hard ? 0 : entry);
        if (s[i] > most) most = s[i];
      }
      for (let i = 0; i < S; i++) total += s[i] = most === -Infinity ? NaN : Math.exp(s[i] - most);
      sums.fill(0);
      for (let i = 0; i < S; i++)
        for (let d = 0, r = (h * S + i) * width, p = s[i] / total; d < width && p; d++) sums[d] += p * v.data[r + d];
      y.data.set(sums, (h * T + t) * width);
    }
  return y;
}

function layerNorm(x, shape, weight, bias, epsilon) {
  const D = count(shape), y = empty(x.shape, x.type), X = x.data;
  for (let r = 0; r < X.length; r += D) {
    let mean = 0, square = 0;
    for (let d = 0; d < D; d++) mean += X[r + d] / D;
    for (let d = 0; d < D; d++) square += (X[r + d] - mean) ** 2 / D;
    const by = 1 / Math.sqrt(square + epsilon);
    for (let d = 0; d < D; d++)
      y.data[r + d] = (X[r + d] - mean) * by * (weight ? weight.data[d] : 1) + (bias ? bias.data[d] : 0);
  }
  return y;
}

function embedding(table, ids) {
  const D = table.shape[1], y = empty([...ids.shape, D], table.type);
  ids.data.forEach((id, i) => {
    if (!(id >= 0 && id < table.shape[0])) throw new Error(`the model has no entry ${id} in a table of ${table.shape[0]}`);
    y.data.set(table.data.subarray(id * D, (id + 1) * D), i * D);
  });
  return y;
}

function gather(x, axis, index) {
  axis = axisOf(x, axis);
  const own = strides(x.shape, x.shape), y = empty(index.shape, x.type), at = new Array(index.shape.length).fill(0);
  for (let i = 0; i < y.data.length; i++) {
    let from = 0;
    for (let d = 0; d < at.length; d++) from += (x.shape[d] === 1 ? 0 : own[d]) * (d === axis ? index.data[i] : at[d]);
    y.data[i] = x.data[from];
    for (let d = at.length - 1; d >= 0; d--) { if (++at[d] < index.shape[d]) break; at[d] = 0; }
  }
  return y;
}

function scattered(x, axis, index, added) {  // x plus each element of `added`, at the place along an axis that `index` says
  axis = axisOf(x, axis);
  const own = strides(x.shape, x.shape), from = strides(added.shape, added.shape);
  const y = tensor(x.data.slice(), x.shape, x.type), at = new Array(index.shape.length).fill(0);
  for (let i = 0; i < index.data.length; i++) {
    let to = 0, taken = 0;
    for (let d = 0; d < at.length; d++) { to += own[d] * (d === axis ? index.data[i] : at[d]); taken += from[d] * at[d]; }
    y.data[to] += added.data[taken];
    for (let d = at.length - 1; d >= 0; d--) { if (++at[d] < index.shape[d]) break; at[d] = 0; }
  }
  return y;
}

function cumulated(x, axis) {
  axis = axisOf(x, axis);
  const inner = count(x.shape.slice(axis + 1)), whole = inner * x.shape[axis], sums = Float64Array.from(x.data);
  for (let i = 0; i < sums.length; i++) if (i % whole >= inner) sums[i] += sums[i - inner];
  const type = RANK[x.type] < 3 ? "int64" : x.type;
  return tensor(ARRAYS[type].from(sums), x.shape, type);
}

function highest(x, axis) {  // the largest so far, and where the last of these stands
  axis = axisOf(x, axis);
  const inner = count(x.shape.slice(axis + 1)), size = x.shape[axis], y = tensor(x.data.slice(), x.shape, x.type), at = empty(x.shape, "int64");
  for (let i = 0; i < y.data.length; i++) {
    const t = Math.floor(i / inner) % size, before = t && y.data[i - inner] > y.data[i];
    if (before) y.data[i] = y.data[i - inner];
    at.data[i] = before ? at.data[i - inner] : t;
  }
  return [y, at];
}

function indexed(x, indices) {  // x[i, j, ..] by tensors for its first axes
  const shape = broadcast(...indices.map(index => index.shape)), inner = count(x.shape.slice(indices.length));
  const all = indices.map(index => expanded(index, shape)), y = empty([...shape, ...x.shape.slice(indices.length)], x.type);
  for (let i = 0; i < count(shape); i++) {
    let at = 0;
    all.forEach((index, d) => { at = at * x.shape[d] + (index.data[i] < 0 ? index.data[i] + x.shape[d] : index.data[i]); });
    y.data.set(x.data.subarray(at * inner, (at + 1) * inner), i * inner);
  }
  return y;
}

function convolved(x, W, b, stride, padding, dilation, groups) {  // [B, C, H, W'] with [D, C, h, w]
  if (groups !== 1) throw new Error("convolutions of several groups are not known here");
  if (x.shape.length === 3) {
    const y = convolved(viewed(x, [x.shape[0], x.shape[1], 1, x.shape[2]]), viewed(W, [W.shape[0], W.shape[1], 1, W.shape[2]]),
      b, [1, ...stride], [0, ...padding], [1, ...dilation], 1);
    return reshaped(y, [y.shape[0], y.shape[1], y.shape[3]]);
  }
  const [B, C, H, L] = x.shape, [D, , h, w] = W.shape, [sh, sw] = stride, [ph, pw] = padding, [dh, dw] = dilation;
  const rows = Math.floor((H + 2 * ph - dh * (h - 1) - 1) / sh) + 1, columns = Math.floor((L + 2 * pw - dw * (w - 1) - 1) / sw) + 1;
  const y = empty([B, D, rows, columns], "float32");
  for (let n = 0, to = 0; n < B; n++)
    for (let d = 0; d < D; d++)
      for (let r = 0; r < rows; r++)
        for (let l = 0; l < columns; l++, to++) {
          let sum = b ? b.data[d] : 0;
          for (let c = 0; c < C; c++)
            for (let i = 0; i < h; i++) {
              const row = r * sh + i * dh - ph;
              if (row < 0 || row >= H) continue;
              for (let j = 0; j < w; j++) {
                const column = l * sw + j * dw - pw;
                if (column >= 0 && column < L)
                  sum += x.data[((n * C + c) * H + row) * L + column] * W.data[((d * C + c) * h + i) * w + j];
              }
            }
          y.data[to] = sum;
        }
  return y;
}

function erf(x) {
  if (Math.abs(x) > 5) return Math.sign(x);
  let term = x, sum = x;
  for (let n = 1; n < 120 && Math.abs(term) > 1e-17 * Math.abs(sum); n++) sum += term *= 2 * x * x / (2 * n + 1);
  return 2 / Math.sqrt(Math.PI) * Math.exp(-x * x) * sum;
}

const sigmoid = x => 1 / (1 + Math.exp(-x));
const gelu = x => 0.5 * x * (1 + erf(x / Math.SQRT2));
const geluTanh = x => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
const floating = x => isTensor(x) && RANK[x.type] < 3 ? cast(x, "float32") : x;
const range = (start, end, step, type) => {
  const n = Math.max(Math.ceil((end - start) / step), 0), y = empty([n], type || "int64");
  for (let i = 0; i < n; i++) y.data[i] = start + i * step;
  return y;
};
const binary = f => (a, b) => paired(a, b, f);
const compared = f => (a, b) => paired(a, b, f, "bool");
const unary = f => x => each(floating(x), f);
const same = x => x;
const where = (mask, a, b) => {
  const type = promoted(a, b), shape = broadcast(mask.shape, ...[a, b].filter(isTensor).map(x => x.shape));
  const [A, B] = [a, b].map(x => expanded(isTensor(x) ? x : filled([], x, "float64"), shape).data);
  const M = expanded(mask, shape).data, y = empty(shape, type);
  for (let i = 0; i < y.data.length; i++) y.data[i] = M[i] ? A[i] : B[i];
  return y;
};
const chunks = (x, n, axis) => {
  axis = axisOf(x, axis);
  const size = Math.ceil(x.shape[axis] / n), sizes = [];
  for (let left = x.shape[axis]; left > 0; left -= size) sizes.push(Math.min(size, left));
  return cut(x, sizes, axis);
};
const flat = (x, first, last) => {
  first = axisOf(x, first); last = axisOf(x, last);
  return reshaped(x, [...x.shape.slice(0, first), count(x.shape.slice(first, last + 1)), ...x.shape.slice(last + 1)]);
};
const unflat = (x, axis, sizes) => {
  axis = axisOf(x, axis);
  const known = sizes.reduce((n, size) => size === -1 ? n : n * size, 1);
  return reshaped(x, [...x.shape.slice(0, axis), ...sizes.map(s => s === -1 ? x.shape[axis] / known : s), ...x.shape.slice(axis + 1)]);
};
const unsqueezed = (x, axis) => {
  const shape = x.shape.slice();
  shape.splice(axis < 0 ? axis + shape.length + 1 : axis, 0, 1);
  return reshaped(x, shape);
};
const mean = (x, axes, keep) => {
  const sum = reduced(floating(x), axes, keep, 0, (a, b) => a + b);
  return each(sum, v => v * sum.data.length / x.data.length);
};

const norm = (x, order, axes, keep) => {
  if (order !== 2) throw new Error(`a norm of order ${order} is not known here`);
  return each(reduced(each(floating(x), v => v * v), axes, keep === true, 0, (a, b) => a + b), Math.sqrt);
};
const padded = (x, sizes, mode, value) => {  // the last axis first: how much before and behind; less than 0: cut off
  if (mode !== "constant") throw new Error(`padding by ${mode} is not known here`);
  for (let k = 0; 2 * k < sizes.length; k++) {
    const axis = x.shape.length - 1 - k, [before, behind] = sizes.slice(2 * k, 2 * k + 2);
    const side = n => filled(x.shape.map((size, i) => i === axis ? Math.max(n, 0) : size), value || 0, x.type);
    const kept = part(x, axis, Math.max(-before, 0), x.shape[axis] + Math.min(behind, 0));
    x = cat([side(before), kept, side(behind)].filter(each => each.shape[axis] || each === kept), axis);
  }
  return x;
};

const OPS = {
  "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "//": (a, b) => Math.floor(a / b),
  "%": (a, b) => ((a % b) + b) % b, max: (a, b) => Math.max(a, b), min: (a, b) => Math.min(a, b), item: (xs, i) => xs[i],
  sym_size: (x, axis) => x.shape[axisOf(x, axis)], sym_numel: x => x.data.length,
  add: (a, b, by = 1) => by === 1 ? paired(a, b, (u, v) => u + v) : paired(a, b, (u, v) => u + by * v),
  sub: (a, b, by = 1) => paired(a, b, (u, v) => u - by * v), rsub: (a, b, by = 1) => paired(a, b, (u, v) => v - by * u),
  mul: binary((a, b) => a * b), div: (a, b) => paired(floating(a), floating(b), (u, v) => u / v),
  pow: (a, b) => paired(floating(a), floating(b), (u, v) => u ** v, isTensor(a) ? floating(a).type : floating(b).type),
  remainder: binary((a, b) => ((a % b) + b) % b), maximum: binary(Math.max), minimum: binary(Math.min),
  ge: compared((a, b) => a >= b), gt: compared((a, b) => a > b), le: compared((a, b) => a <= b), lt: compared((a, b) => a < b),
  eq: compared((a, b) => a === b), ne: compared((a, b) => a !== b),
  __and__: compared((a, b) => a && b), __or__: compared((a, b) => a || b), logical_and: compared((a, b) => a && b),
  logical_or: compared((a, b) => a || b), bitwise_and: compared((a, b) => a && b), bitwise_or: compared((a, b) => a || b),
  bitwise_not: x => each(x, v => v ? 0 : 1), logical_not: x => each(x, v => v ? 0 : 1, "bool"),
  sigmoid: unary(sigmoid), tanh: unary(Math.tanh), relu: x => each(x, v => v > 0 ? v : 0), exp: unary(Math.exp),
  log: unary(Math.log), log1p: unary(Math.log1p), sqrt: unary(Math.sqrt), rsqrt: unary(v => 1 / Math.sqrt(v)), cos: unary(Math.cos),
  sin: unary(Math.sin), silu: unary(v => v * sigmoid(v)), neg: x => isTensor(x) ? each(x, v => -v) : -x,
  abs: x => each(x, Math.abs), square: x => each(x, v => v * v), gelu: (x, way) => each(x, way === "tanh" ? geluTanh : gelu),
  clamp: (x, low, high) => each(x, v => Math.min(Math.max(v, low === null ? -Infinity : low), high === null ? Infinity : high)),
  clamp_min: (x, low) => each(x, v => Math.max(v, low)), clamp_max: (x, high) => each(x, v => Math.min(v, high)),
  addcmul: (a, b, c, by = 1) => paired(a, paired(b, c, (u, v) => by * u * v), (u, v) => u + v),
  lerp: (a, b, w) => paired(a, paired(paired(b, a, (u, v) => u - v), w, (u, v) => u * v), (u, v) => u + v),
  linear, matmul, mm: matmul, bmm: matmul, softmax: (x, axis) => softmax(x, axis), log_softmax: (x, axis) => softmax(x, axis, true),
  addmm: (a, b, c) => paired(a, matmul(b, c), (u, v) => u + v), baddbmm: (a, b, c) => paired(a, matmul(b, c), (u, v) => u + v),
  scaled_dot_product_attention: attention, layer_norm: layerNorm, embedding, gather, scatter_add: scattered, cumsum: cumulated,
  cummax: highest, linalg_vector_norm: norm, pad: padded, "index.Tensor": indexed,
  conv1d: convolved, conv2d: convolved, "where.self": where, "where.ScalarOther": where, "where.ScalarSelf": where,
  "where.Scalar": where, masked_fill: (x, mask, value) => where(mask, isTensor(value) ? value : filled([], value, x.type), x),
  sum: (x, axes, keep) => reduced(x, Array.isArray(axes) ? axes : null, keep === true, 0, (a, b) => a + b, RANK[x.type] < 3 ? "int64" : x.type),
  mean: (x, axes, keep) => mean(x, Array.isArray(axes) ? axes : null, keep === true),
  "any.dim": (x, axis, keep) => reduced(x, [axis], keep, 0, (a, b) => a || b ? 1 : 0, "bool"),
  amax: (x, axes, keep) => reduced(x, axes, keep, -Infinity, Math.max), amin: (x, axes, keep) => reduced(x, axes, keep, Infinity, Math.min),
  cat: (xs, axis = 0) => cat(xs, axis), stack: (xs, axis = 0) => cat(xs.map(x => unsqueezed(x, axis)), axis < 0 ? axis : axis),
  slice: (x, axis = 0, start = null, end = null, step = 1) => part(x, axis, start, end, step), select, index_select: (x, axis, index) => cat(
    [...index.data].map(i => part(x, axis, i, i + 1)), axis), chunk: (x, n, axis = 0) => chunks(x, n, axis),
  "split.Tensor": (x, size, axis = 0) => chunks(x, Math.ceil(x.shape[axisOf(x, axis)] / size), axis), split_with_sizes: (x, sizes, axis = 0) => cut(x, sizes, axis),
  unbind: (x, axis = 0) => range(0, x.shape[axisOf(x, axis)], 1).data.reduce((all, i) => [...all, select(x, axis, i)], []),
  view: viewed, reshape: viewed, _unsafe_view: viewed, flatten: (x, first = 0, last = -1) => flat(x, first, last), unflatten: unflat,
  unsqueeze: unsqueezed, "squeeze.dim": (x, axis) => reshaped(x, x.shape.filter((size, i) => i !== axisOf(x, axis) || size !== 1)),
  transpose: swapped, t: x => x.shape.length < 2 ? x : swapped(x, 0, 1), mT: x => swapped(x, -1, -2),
  permute: (x, order) => permuted(x, order.map(axis => axisOf(x, axis))), expand, expand_as: (x, y) => expanded(x, y.shape),
  repeat: (x, times) => {
    const own = [...new Array(times.length - x.shape.length).fill(1), ...x.shape];
    return times.reduce((y, n, axis) => n === 1 ? y : cat(new Array(n).fill(y), axis), reshaped(x, own));
  },
  flip: (x, axes) => axes.reduce((y, axis) => cat(cut(y, new Array(y.shape[axisOf(y, axis)]).fill(1), axis).reverse(), axis), x),
  arange: (end, type) => range(0, end, 1, type), "arange.start": (start, end, type) => range(start, end, 1, type),
  "arange.start_step": range, zeros: (shape, type) => filled(shape, 0, type || "float32"), ones: (shape, type) => filled(shape, 1, type || "float32"),
  full: (shape, value, type) => filled(shape, value, type || typeOfNumber(value)), zeros_like: (x, type) => filled(x.shape, 0, type || x.type),
  ones_like: (x, type) => filled(x.shape, 1, type || x.type), full_like: (x, value, type) => filled(x.shape, value, type || x.type),
  new_zeros: (x, shape, type) => filled(shape, 0, type || x.type), new_ones: (x, shape, type) => filled(shape, 1, type || x.type),
  new_full: (x, shape, value, type) => filled(shape, value, type || x.type), clone: same, contiguous: same, alias: same, dropout: same,
  detach: same, detach_: same, "to.device": (x, device, type) => cast(x, type || x.type), "to.dtype": cast, "to.dtype_layout": (x, type) => cast(x, type || x.type),
  _to_copy: (x, type) => cast(x, type || x.type), lift_fresh_copy: same,
};

const known = op => OPS[op] || OPS[op.split(".")[0]];

function compiled(program) {  // {inputs, operations: [[name, op, args]], outputs, bodies} -> (values) => outputs
  const place = new Map();
  const slot = name => place.has(name) ? place.get(name) : place.set(name, place.size).get(name);
  program.inputs.forEach(slot);
  const bodies = Object.fromEntries(Object.entries(program.bodies).map(([name, body]) => [name, compiled(body)]));
  const argument = value => {  // -> a function of all values so far
    if (Array.isArray(value)) {
      const parts = value.map(argument);
      return values => parts.map(each => each(values));
    }
    if (value !== null && typeof value === "object") {
      if ("number" in value) { const number = Number(value.number); return () => number; }
      if (value.ref in bodies) return () => bodies[value.ref];
      const at = slot(value.ref);
      return values => values[at];
    }
    return () => value;
  };
  const special = {
    call: (body, args) => body(args),
    scan: (tick, carried, inputs, constants) => {
      const outputs = [], n = carried.length;
      for (let t = 0; t < inputs[0].shape[0]; t++) {
        const found = tick([...carried, ...inputs.map(x => select(x, 0, t)), ...constants]);
        carried = found.slice(0, n);
        outputs.push(found.slice(n));
      }
      return [...carried, ...outputs[0].map((_, i) => OPS.stack(outputs.map(each => each[i]), 0))];
    },
  };
  const steps = program.operations.map(([name, op, args]) => {
    const f = special[op] || known(op);
    if (!f) throw new Error(`the operation ${op} is not known here`);
    const parts = args.map(argument);
    return [slot(name), f, parts];
  });
  const outputs = program.outputs.map(slot);
  return given => {
    const values = new Array(place.size);
    given.forEach((value, i) => { values[i] = value; });
    for (const [to, f, parts] of steps) values[to] = f(...parts.map(each => each(values)));
    return outputs.map(at => values[at]);
  };
}

function halves(words) {  // float16 -> float32
  const table = exponent => exponent === 0 ? 2 ** -24 : 2 ** (exponent - 25);
  return Float32Array.from(words, word => {
    const exponent = (word >> 10) & 31, fraction = word & 1023, sign = word & 32768 ? -1 : 1;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return sign * table(exponent) * (exponent ? fraction + 1024 : fraction);
  });
}

function weightsOf(bytes, list) {
  const found = {};
  for (const {name, dtype, shape, at, size, stored} of list) {
    const own = bytes.slice(at, at + size).buffer;
    const data = stored === "float16" ? halves(new Uint16Array(own)) : stored === "int64" ? Float64Array.from(new BigInt64Array(own), Number)
      : stored === "bool" ? new Uint8Array(own) : stored === "float64" ? new Float64Array(own) : new Float32Array(own);
    found[name] = tensor(data, shape, dtype);
  }
  return found;
}

function modelOf(model, bytes) {  // {graphs: {name: {program, weights, inputs, outputs}}, weights} -> functions by name
  const weights = weightsOf(bytes, model.weights), functions = {};
  for (const [name, graph] of Object.entries(model.graphs)) {
    const run = compiled(graph.program), local = graph.weights;
    functions[name] = inputs => {
      const rest = graph.inputs.map(port => inputs[port.name]);
      let next = 0;
      const found = run(graph.program.inputs.map(input => input in local ? weights[local[input]] : rest[next++]));
      return Object.fromEntries(graph.outputs.map((port, i) => [port.name, found[i]]));
    };
  }
  functions.initial = rows => Object.fromEntries(Object.entries(model.initial).map(([name, first]) => {
    const values = [first.values].flat(Infinity), one = empty(first.shape, first.dtype);
    if (one.data.length) one.data.set(values.length === 1 ? one.data.map(() => values[0]) : values);
    return [name, expanded(one, [rows, ...first.shape])];
  }));
  functions.next = (token, state) => {  // a tick: [outputs, the state after it]
    const step = model.graphs.step, found = functions.step({...state, [step.inputs[0].name]: token}), after = {...state};
    for (const name of Object.keys(found)) if (name.endsWith(".next")) after[name.slice(0, -5)] = found[name];
    return [found[step.outputs[0].name], after];
  };
  return functions;
}

function compare(functions, cases) {  // outputs for the inputs of some cases, to be compared with those of the run
  const array = ({values, shape, dtype}) => tensor(ARRAYS[dtype].from(values), shape, dtype);
  return cases.map(given => {
    const x = array(given.x);
    if (functions.read) return functions.read({x, mask: array(given.mask)}).y;
    let state = functions.initial(x.shape[0]), y;
    if (functions.condition) {
      const names = given.mask ? {source: array(given.source), mask: array(given.mask)} : {class: array(given.source), source: array(given.source)};
      state = {...state, ...functions.condition(names)};
    }
    const outputs = [];
    for (let t = 0; t < x.shape[1]; t++) {
      [y, state] = functions.next(select(x, 1, t), state);
      outputs.push(y);
    }
    return OPS.stack(outputs, 1);
  }).map(y => ({shape: y.shape, values: Array.from(y.data, v => Number.isFinite(v) ? v : String(v))}));
}
