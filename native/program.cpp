// Programs: the loop over the operations of one tick, and the loop over ticks that choose their own inputs.
#include "program.h"

#include "choose.h"
#include "mixture.h"
#include "ngram.h"
#include "steps.h"

namespace {

template <class S>
struct Tick {  // one tick of all rows, and the registers it works with
    const Program& program;
    const Stream& stream;
    const int64_t* tokens;
    const S* numbers;
    S* y;

    static int64_t wide(int64_t n) { return round_up(n, 16); }
    S* at(int64_t offset) const { return static_cast<S*>(stream.room) + offset * stream.rows; }
    S* row(int64_t offset, int64_t n, int64_t i) const { return at(offset) + i * wide(n); }
    const S* weights(int64_t offset) const { return offset < 0 ? nullptr : static_cast<const S*>(program.weights) + offset; }
    S* leaf(int64_t slot, int64_t n, int64_t i) const { return static_cast<S*>(stream.slots[slot]) + i * n; }
    bool same_room(int64_t slot) const {  // of the four leaves of a source
        const int64_t* room = stream.rooms + slot;
        return room[0] == room[1] && room[0] == room[2] && room[0] == room[3];
    }
    int64_t& counter(int64_t slot, int64_t i) const { return static_cast<int64_t*>(stream.slots[slot])[i]; }

    int run() const {
        for (const Op *op = program.ops, *end = op + program.n_ops; op < end; ++op)
            if (const int fault = this->run(*op)) return fault;
        return OK;
    }

    int run(const Op& op) const {
        if (op.kind == AFFINE) return affine(op);
        for (int64_t i = 0; i < stream.rows; ++i) {
            S* out = op.out < 0 ? nullptr : row(op.out, op.n, i);
            if (const int fault = one(op, i, out)) return fault;
        }
        return OK;
    }

    template <class P>
    void times(const Op& op, const P* w, S* sums) const {
        if (stream.rows == 1)
            row_product<S>(op.n, op.k, at(op.x), w, sums);
        else
            product<S>(stream.rows, op.n, op.k, at(op.x), wide(op.k), w, sums, wide(op.n));
    }

    int affine(const Op& op) const {
        const int64_t n = op.n, rows = stream.rows;
        S* out = at(op.out);
        const S *W = weights(op.weight), *bias = weights(op.bias), *scales = nullptr;
        S* sums = op.y < 0 ? out : at(op.d);  // where y may be out itself, the product needs a place of its own
        if (op.b == FULL) {
            times(op, W, sums);
        } else if constexpr (sizeof(S) == sizeof(float)) {
            if (op.b == BF16)
                times(op, reinterpret_cast<const bf16*>(W), sums);
            else if (op.b == INT8)
                times(op, reinterpret_cast<const int8_t*>(W), sums), scales = weights(op.c);
            else
                return UNKNOWN;
        } else {
            return UNKNOWN;
        }
        if (op.y < 0 && !bias && !scales && op.a == IDENTITY) return OK;
        const S* y = op.y < 0 ? nullptr : at(op.y);
        for (int64_t i = 0; i < rows; ++i, out += wide(n), sums += wide(n)) {
            for (int64_t j = 0; j < n; j += WIDTH<S>) {  // rows have room for whole registers
                Vec<S> v = load(sums + j);
                if (scales) v *= load(scales + j);  // so do scales and biases
                if (bias) v += load(bias + j);
                if (y) v += load(y + j);
                store(out + j, activated<S>(v, op.a));
            }
            if (y) y += wide(n);
        }
        return OK;
    }

    // every other operation, of row i
    int one(const Op& op, int64_t i, S* out) const {
        const int64_t n = op.n;
        switch (op.kind) {
            case LOOK_UP: {
                const int64_t token = tokens ? tokens[i] : -1;
                if (token < 0 || token >= op.b) return BAD_TOKEN;
                const S* table = op.a ? reinterpret_cast<const S*>(op.a) : weights(op.weight);
                EVERY(j, m) store(out + j, load(table + token * n + j, m) * S(op.number), m);
                return OK;
            }
            case INPUT:
                if (!numbers) return BAD_POINTER;
                std::memcpy(out, numbers + i * n, n * sizeof(S));
                return OK;
            case POINTWISE: {
                const S *x = row(op.x, n, i), *y = op.b == ALONE ? nullptr : row(op.y, n, i);
                EVERY(j, m) {
                    Vec<S> v = activated<S>(load(x + j, m), op.a);
                    if (op.b == PLUS) v += load(y + j, m);
                    if (op.b == TIMES) v *= load(y + j, m);
                    store(out + j, activated<S>(v, op.c), m);
                }
                return OK;
            }
            case LOAD: std::memcpy(out, leaf(op.slot, op.d, i) + op.a, n * sizeof(S)); return OK;
            case STORE: std::memcpy(leaf(op.slot, op.d, i) + op.a, row(op.x, n, i), n * sizeof(S)); return OK;
            case LSTM_TICK: case GRU_TICK: case RESET: case UPDATE: return recurrence(op, i, out);
            case WINDOW: {
                const int64_t K = n - op.k;  // numbers of the taps of one phase
                if (counter(op.c, i) < 0) return BAD_SIZE;
                S* taps = leaf(op.slot, op.d * K, i) + (op.b + counter(op.c, i) % op.a) * K;
                std::memcpy(out, taps, K * sizeof(S));
                std::memcpy(out + K, row(op.x, op.k, i), op.k * sizeof(S));
                std::memcpy(taps, out + op.k, K * sizeof(S));
                return OK;
            }
            case ADVANCE: {
                int64_t& count = counter(op.slot, i);
                count = op.a ? (count + 1) % op.a : count + 1;
                return OK;
            }
            case GATE: {
                const S* x = row(op.x, 2 * n, i);
                EVERY(j, m) store(out + j, vtanh(load(x + j, m)) * sigmoid<S>(load(x + n + j, m)), m);
                return OK;
            }
            case NORM: norm(op.a, n, S(op.number), row(op.x, n, i), weights(op.weight), weights(op.bias), out); return OK;
            case ANGLES: case ROTATE: case KEEP: case ATTEND: case LOOK: case ALIGN: return attention(op, i, out);
            case BESIDE: {
                const int64_t last = stream.rooms[op.slot] - 1, place = counter(op.slot + 1, i) / op.a;
                if (last < 0 || place < 0) return BAD_SIZE;
                std::memcpy(out, leaf(op.slot, (last + 1) * n, i) + (place < last ? place : last) * n, n * sizeof(S));
                return OK;
            }
            case NGRAM: return ngram(op, i, out);
            case MIXTURE: {
                const Weights<S> by{weights(op.weight), weights(op.bias), weights(op.a), weights(op.b), weights(op.c)};
                return mixture<S>(by, op.k, n, S(op.number), row(op.x, op.k * n, i), out);
            }
            case PLACE: case WAVES: case UNIT: return position(op, i, out);
            case SOFTMAX:
                std::memcpy(out, row(op.x, n, i), n * sizeof(S));
                softmax(out, n);
                return OK;
            case JOIN: std::memcpy(out + op.a, row(op.x, op.k, i), op.k * sizeof(S)); return OK;
            case PART: std::memcpy(out, row(op.x, op.k, i) + op.a, n * sizeof(S)); return OK;
            case FIRST: {
                const S *x = row(op.x, n, i), keep = S(1) - *leaf(op.slot, 1, i);
                EVERY(j, m) store(out + j, keep * load(x + j, m), m);
                *leaf(op.slot, 1, i) = 1;
                return OK;
            }
            case OUTPUT: std::memcpy(y + i * n, row(op.x, n, i), n * sizeof(S)); return OK;
            default: return UNKNOWN;
        }
    }

    int recurrence(const Op& op, int64_t i, S* out) const {
        const int64_t n = op.n;
        if (op.kind == LSTM_TICK) {
            const S* x = row(op.x, 4 * n, i);
            S *h = leaf(op.slot, op.d, i), *c = h + op.a;
            EVERY(j, m) {
                const Vec<S> in = sigmoid<S>(load(x + j, m)), keep = sigmoid<S>(load(x + n + j, m));
                const Vec<S> v = keep * load(c + j, m) + in * vtanh(load(x + 2 * n + j, m));
                const Vec<S> made = sigmoid<S>(load(x + 3 * n + j, m)) * vtanh(v);
                store(c + j, v, m), store(out + j, made, m);
                if (op.b >= 0) store(h + j, made, m);
            }
            return OK;
        }
        S* h = leaf(op.slot, n, i);
        S* x = row(op.x, 3 * n, i);
        if (op.kind == RESET) {
            const S* y = row(op.y, 2 * n, i);
            EVERY(j, m) {
                store(out + j, sigmoid<S>(load(x + j, m) + load(y + j, m)) * load(h + j, m), m);
                store(x + n + j, load(x + n + j, m) + load(y + n + j, m), m);
            }
            return OK;
        }
        const S* y = op.kind == GRU_TICK ? row(op.y, 3 * n, i) : row(op.y, n, i);
        EVERY(j, m) {
            const Vec<S> old = load(h + j, m);
            Vec<S> made;
            if (op.kind == GRU_TICK) {
                const Vec<S> r = sigmoid<S>(load(x + j, m) + load(y + j, m));
                const Vec<S> z = sigmoid<S>(load(x + n + j, m) + load(y + n + j, m));
                const Vec<S> v = vtanh(load(x + 2 * n + j, m) + r * load(y + 2 * n + j, m));
                made = v + z * (old - v);
            } else {
                const Vec<S> u = sigmoid<S>(load(x + n + j, m)), v = vtanh(load(x + 2 * n + j, m) + load(y + j, m));
                made = old + u * (v - old);
            }
            store(h + j, made, m), store(out + j, made, m);
        }
        return OK;
    }

    int attention(const Op& op, int64_t i, S* out) const {
        const int64_t n = op.n, m = op.a, m_v = op.b, slot = op.slot;
        switch (op.kind) {
            case ANGLES:
                for (int64_t j = 0; j < n / 2; ++j) {
                    const double w = double(counter(slot, i)) * std::pow(op.number, -2.0 * double(j) / double(n));
                    out[j] = S(std::cos(w)), out[n / 2 + j] = S(std::sin(w));
                }
                return OK;
            case ROTATE: {
                const S *x = row(op.x, n, i), *turn = row(op.y, m, i);
                const int64_t half = m / 2, end = op.k < 0 ? n : op.k;
                for (int64_t h = 0; h < end; h += m)
                    for (int64_t j = 0; j < half; ++j) {
                        const S a = x[h + j], b = x[h + half + j], cos = turn[j], sin = turn[half + j];
                        out[h + j] = a * cos - b * sin, out[h + half + j] = b * cos + a * sin;
                    }
                return OK;
            }
            case KEEP: {
                const int64_t place = counter(slot + 2, i), at = op.c ? place % op.c : place, room = stream.rooms[slot];
                if (place < 0 || room != stream.rooms[slot + 1]) return BAD_SIZE;
                if (at >= room) return NO_ROOM;
                const S* x = row(op.x, op.k, i);
                S* keys = leaf(slot, n * room * m, i) + at * m;
                S* values = leaf(slot + 1, n * room * m_v, i) + at * m_v;
                const int64_t G = op.d;
                for (int64_t h = 0; h < n; ++h) {
                    std::memcpy(keys + h * room * m, x + h * G / n * m, m * sizeof(S));
                    std::memcpy(values + h * room * m_v, x + G * m + h * G / n * m_v, m_v * sizeof(S));
                }
                return OK;
            }
            case ATTEND: {
                const int64_t after = counter(slot + 2, i) + 1, seen = op.c && after > op.c ? op.c : after;
                const int64_t room = stream.rooms[slot], H = n / m_v;
                if (seen > room) return NO_ROOM;
                const S *q = row(op.x, H * m, i), *keys = leaf(slot, H * room * m, i), *values = leaf(slot + 1, H * room * m_v, i);
                for (int64_t h = 0; h < H; ++h)
                    attend<S>(q + h * m, keys + h * room * m, values + h * room * m_v, nullptr, seen, m, m_v, S(op.number),
                              static_cast<S*>(stream.scores), out + h * m_v);
                return OK;
            }
            case ALIGN: {
                const int64_t seen = stream.rooms[slot], K = op.k;
                if (!same_room(slot)) return BAD_SIZE;
                const S *q = row(op.x, K, i), *keys = leaf(slot, seen * K, i), *bias = leaf(slot + 3, seen, i);
                const S* v = weights(op.weight);
                S* s = static_cast<S*>(stream.scores);
                for (int64_t t = 0; t < seen; ++t)
                    s[t] = bias[t] + (v ? additive(v, q, keys + t * K, K) : S(op.number) * dot(q, keys + t * K, K));
                softmax(s, seen);
                weighted<S>(s, leaf(slot + 1, seen * m, i), seen, m, out);
                weighted<S>(s, leaf(slot + 2, seen * m_v, i), seen, m_v, out + m);
                return OK;
            }
            default: {  // LOOK
                const int64_t seen = stream.rooms[slot], H = n / m_v;
                if (!same_room(slot)) return BAD_SIZE;
                const S *q = row(op.x, H * m, i), *keys = leaf(slot, H * seen * m, i), *values = leaf(slot + 1, H * seen * m_v, i);
                for (int64_t h = 0; h < H; ++h)
                    attend<S>(q + h * m, keys + h * seen * m, values + h * seen * m_v, leaf(slot + 3, seen, i), seen, m, m_v,
                              S(op.number), static_cast<S*>(stream.scores), out + h * m_v);
                return OK;
            }
        }
    }

    int ngram(const Op& op, int64_t i, S* out) const {
        const Contexts<S>& tree = *reinterpret_cast<const Contexts<S>*>(op.a);
        const int64_t N = op.b, token = tokens ? tokens[i] : -1;
        if (token < 0 || token >= tree.n_tokens) return BAD_TOKEN;
        if (N > DEEPEST) return BAD_SIZE;
        int64_t path[DEEPEST + 1], *past = static_cast<int64_t*>(stream.slots[op.slot]) + i * N;
        const int64_t depth = descend<S>(tree, token, past, N, path);
        if (N > 0) std::memmove(past, past + 1, (N - 1) * sizeof(int64_t)), past[N - 1] = token;
        return interpolated<S>(tree, path, depth, weights(op.weight), op.n, out);
    }

    int position(const Op& op, int64_t i, S* out) const {
        const int64_t n = op.n, place = counter(op.slot, i);
        if (place < 0) return BAD_SIZE;
        if (op.kind == WAVES) {
            const int64_t width = op.k;
            for (int64_t j = 0; j < n; ++j) {
                const double w = double(place + op.a) * std::pow(op.number, -double(j - j % 2) / double(width));
                const S wave = S(j % 2 ? std::cos(w) : std::sin(w));
                out[j] = op.x < 0 ? wave : row(op.x, n, i)[j] + wave;
            }
            return OK;
        }
        if (op.kind == UNIT) {
            if (place >= n) return TOO_LONG;
            std::memset(out, 0, n * sizeof(S));
            out[place] = 1;
            return OK;
        }
        if (place >= op.k) return TOO_LONG;
        const S *x = row(op.x, n, i), *table = weights(op.weight) + place * n;
        EVERY(j, m) store(out + j, load(x + j, m) + load(table + j, m), m);
        return OK;
    }
};

template <class S>
int step(const Program* program, const Stream* stream, const int64_t* tokens, const S* numbers, S* y) {
    if (!program || !stream || !program->ops || !y) return BAD_POINTER;
    if (stream->rows < 1) return BAD_SIZE;
    return Tick<S>{*program, *stream, tokens, numbers, y}.run();
}

template <class S>
int draw(const Program* program, const Stream* stream, Drawing* drawing) {
    if (!program || !stream || !drawing) return BAD_POINTER;
    Drawing& d = *drawing;
    const int64_t rows = stream->rows, T = d.n_ticks;
    int64_t fed[128];
    if (rows < 1 || rows > 128 || d.n_choices < 1) return BAD_SIZE;
    for (int64_t j = 0; j < d.n_never; ++j)
        if (d.never[j] < 0 || d.never[j] >= d.n_choices) return BAD_TOKEN;
    for (d.n_done = 0; d.n_done < T;) {
        const int64_t t = d.tick, column = d.n_done;
        int64_t left = 0;
        for (int64_t i = 0; i < rows; ++i) {
            const int64_t place = i * T + column;
            const bool prompted = t < d.lengths[i], active = d.alive[i] && !prompted;
            int64_t token = 0;
            double log_p = 0;
            bool stopped = false;
            if (active) {
                token = chosen<S>(d, i, uniform(d.keys[i], t), &log_p);
                if (token < 0) return d.row = i, NO_CHOICE;
                for (int64_t j = 0; j < d.n_stops; ++j) stopped |= token == d.stops[j];
            } else if (prompted) {
                token = d.given[i * d.n_given + t];
            }
            d.tokens[place] = fed[i] = token;
            d.active[place] = active, d.stopped[place] = stopped, d.log_p[place] = log_p;
            d.alive[i] = d.alive[i] && !stopped && t + 1 < d.ends[i];
            left += d.alive[i];
            if (d.seen && token >= 0 && token < d.n_choices) d.seen[i * d.n_choices + token] = 1;
        }
        ++d.n_done, ++d.tick;
        if (!left) return OK;
        if (const int fault = step<S>(program, stream, fed, nullptr, static_cast<S*>(d.y))) return fault;
    }
    return OK;
}

}  // namespace

#define DEFINE(S, NAME)                                                                                                \
    int64_t packed_numbers_##NAME(int64_t K, int64_t n) { return packed_size<S>(K, n); }                               \
    int pack_##NAME(int64_t K, int64_t n, const S* w, int64_t by_k, int64_t by_j, S* out) {                            \
        if (K < 1 || n < 1) return BAD_SIZE;                                                                           \
        if (!w || !out) return BAD_POINTER;                                                                            \
        return pack<S>(out, w, K, n, by_k, by_j), OK;                                                                  \
    }                                                                                                                  \
    int step_##NAME(const Program* program, const Stream* stream, const int64_t* tokens, const S* numbers, S* y) {     \
        return step<S>(program, stream, tokens, numbers, y);                                                           \
    }                                                                                                                  \
    int draw_##NAME(const Program* program, const Stream* stream, Drawing* drawing) {                                  \
        return draw<S>(program, stream, drawing);                                                                      \
    }

DEFINE(float, f32)
DEFINE(double, f64)

template <class P>
static int pack_of(int64_t K, int64_t n, const P* w, int64_t by_k, int64_t by_j, P* out) {
    if (K < 1 || n < 1) return BAD_SIZE;
    if (!w || !out) return BAD_POINTER;
    return pack<float>(out, w, K, n, by_k, by_j), OK;
}
int pack_bf16(int64_t K, int64_t n, const uint16_t* w, int64_t by_k, int64_t by_j, uint16_t* out) {
    return pack_of(K, n, w, by_k, by_j, out);
}
int pack_int8(int64_t K, int64_t n, const int8_t* w, int64_t by_k, int64_t by_j, int8_t* out) {
    return pack_of(K, n, w, by_k, by_j, out);
}

// four lanes, so that memory and not the chain of products sets the pace
uint64_t digest(const void* data, int64_t bytes, uint64_t before) {
    const unsigned char* p = static_cast<const unsigned char*>(data);
    uint64_t lanes[4] = {before ^ 0x9E3779B97F4A7C15ull, before + 1, before + 2, before + 3};
    int64_t i = 0;
    for (; i + 32 <= bytes; i += 32)
        for (int k = 0; k < 4; ++k) {
            uint64_t word;
            std::memcpy(&word, p + i + 8 * k, 8);
            lanes[k] = (lanes[k] ^ word) * 0xBF58476D1CE4E5B9ull, lanes[k] ^= lanes[k] >> 29;
        }
    for (; i < bytes; ++i) lanes[0] = (lanes[0] ^ p[i]) * 0x94D049BB133111EBull, lanes[0] ^= lanes[0] >> 29;
    uint64_t h = uint64_t(bytes);
    for (uint64_t lane : lanes) h = mix(h ^ lane) + 0x9E3779B97F4A7C15ull;
    return h;
}
