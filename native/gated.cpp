// GRU (both forms), LSTM and Elman along time: only what goes from tick to tick. The products with all inputs before and
// those for the weights' gradients after are large, and stay with whoever calls.
//
// Rows are independent, so each thread takes its own rows through all ticks, and no tick waits for another thread.
#include "api.h"
#include "product.h"

// body(first unit, how many of a register): whole registers by code without a branch, then the rest
#define EACH(j, m) each<S>(N, [&](int64_t j, int64_t m) __attribute__((always_inline))

namespace {

template <class S>
INLINE int64_t width_of(int64_t n) { return round_up(n, WIDTH<S>); }

template <class S, class Body>
INLINE void each(int64_t N, Body body) {
    int64_t j = 0;
    for (; j + WIDTH<S> <= N; j += WIDTH<S>) body(j, WIDTH<S>);
    if (j < N) body(j, N - j);
}

// run(first row, number of rows) by as many threads as asked
template <class Run>
INLINE void by_rows(int64_t B, int64_t threads, Run run) {
#ifdef _OPENMP
    if (threads > 1 && B > 1) {
        const int n = int(threads < B ? threads : B);
#pragma omp parallel for num_threads(n) schedule(static, 1)
        for (int i = 0; i < n; ++i) run(B * i / n, B * (i + 1) / n - B * i / n);
        return;
    }
#endif
    run(0, B);
}

// sums [B, 3N] | packed W [N, 3N]
template <class S>
void gru_rows(int64_t T, int64_t B, int64_t N, int64_t b0, int64_t rows, S* a, S* q, S* h, const S* P, const S* b_n, S* sums) {
    const int64_t wide = width_of<S>(3 * N);
    for (int64_t t = 0; t < T; ++t) {
        const S* old = h + (t * B + b0) * N;
        S *now = h + ((t + 1) * B + b0) * N, *at = a + (t * B + b0) * 3 * N, *qt = q + (t * B + b0) * N;
        product<S>(rows, 3 * N, N, old, N, P, sums, wide);
        for (int64_t i = 0; i < rows; ++i, old += N, now += N, at += 3 * N, qt += N) {
            const S* c = sums + i * wide;
            EACH(j, m) {
                const Vec<S> r = sigmoid<S>(load(at + j, m) + load(c + j, m));
                const Vec<S> z = sigmoid<S>(load(at + N + j, m) + load(c + N + j, m));
                const Vec<S> p = b_n ? load(c + 2 * N + j, m) + load(b_n + j, m) : load(c + 2 * N + j, m);
                const Vec<S> n = vtanh(load(at + 2 * N + j, m) + r * p);
                store(at + j, r, m), store(at + N + j, z, m), store(at + 2 * N + j, n, m), store(qt + j, p, m);
                store(now + j, n + z * (load(old + j, m) - n), m);
            });
        }
    }
}

// sums [B, N] | packed W, rows q, r, z [3N, N]
template <class S>
void gru_back(int64_t T, int64_t B, int64_t N, int64_t b0, int64_t rows, const S* a, const S* q, const S* h, const S* P,
              const S* g, int64_t g_by_t, int64_t g_by_b, S* dh, S* d, S* sums) {
    const int64_t wide = width_of<S>(N);
    for (int64_t t = T - 1; t >= 0; --t) {
        const S *at = a + (t * B + b0) * 3 * N, *qt = q + (t * B + b0) * N, *old = h + (t * B + b0) * N;
        S *dt = d + (t * B + b0) * 4 * N, *e = dh + b0 * N;
        const S* gt = g + t * g_by_t + b0 * g_by_b;
        for (int64_t i = 0; i < rows; ++i, at += 3 * N, qt += N, old += N, dt += 4 * N, e += N, gt += g_by_b) {
            const S* c = sums + i * wide;
            EACH(j, m) {
                Vec<S> v = load(e + j, m) + load(gt + j, m);
                if (t < T - 1) v += load(c + j, m);
                const Vec<S> r = load(at + j, m), z = load(at + N + j, m), n = load(at + 2 * N + j, m);
                const Vec<S> keep = S(1) - z, dn = v * keep * (S(1) - n * n), dq = dn * r;
                store(dt + j, dq, m);
                store(dt + N + j, dq * load(qt + j, m) * (S(1) - r), m);
                store(dt + 2 * N + j, v * (load(old + j, m) - n) * z * keep, m);
                store(dt + 3 * N + j, dn, m);
                store(e + j, v * z, m);
            });
        }
        product<S>(rows, N, 3 * N, d + (t * B + b0) * 4 * N, 4 * N, P, sums, wide);
    }
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < N; ++j) dh[(b0 + i) * N + j] += sums[i * wide + j];
}

// sums [B, 2N] | packed W_ru [N, 2N] | packed W_n [N, N]
template <class S>
void book_rows(int64_t T, int64_t B, int64_t N, int64_t b0, int64_t rows, S* a, S* s, S* h, const S* P, const S* P_n, S* sums) {
    const int64_t wide = width_of<S>(2 * N);
    for (int64_t t = 0; t < T; ++t) {
        const S* old = h + (t * B + b0) * N;
        S *now = h + ((t + 1) * B + b0) * N, *at = a + (t * B + b0) * 3 * N, *st = s + (t * B + b0) * N;
        product<S>(rows, 2 * N, N, old, N, P, sums, wide);
        for (int64_t i = 0; i < rows; ++i) {
            const S* c = sums + i * wide;
            EACH(j, m) {
                const Vec<S> r = sigmoid<S>(load(at + i * 3 * N + j, m) + load(c + j, m));
                store(at + i * 3 * N + j, r, m);
                store(at + i * 3 * N + N + j, sigmoid<S>(load(at + i * 3 * N + N + j, m) + load(c + N + j, m)), m);
                store(st + i * N + j, r * load(old + i * N + j, m), m);
            });
        }
        product<S>(rows, N, N, st, N, P_n, sums, wide);
        for (int64_t i = 0; i < rows; ++i, old += N, now += N, at += 3 * N) {
            const S* c = sums + i * wide;
            EACH(j, m) {
                const Vec<S> u = load(at + N + j, m), n = vtanh(load(at + 2 * N + j, m) + load(c + j, m));
                const Vec<S> before = load(old + j, m);
                store(at + 2 * N + j, n, m);
                store(now + j, before + u * (n - before), m);
            });
        }
    }
}

// sums [B, N] | packed W_ru [2N, N] | packed W_n [N, N]
template <class S>
void book_back(int64_t T, int64_t B, int64_t N, int64_t b0, int64_t rows, const S* a, const S* h, const S* P, const S* P_n,
               const S* g, int64_t g_by_t, int64_t g_by_b, S* dh, S* d, S* sums) {
    const int64_t wide = width_of<S>(N);
    for (int64_t t = T - 1; t >= 0; --t) {
        const S *at = a + (t * B + b0) * 3 * N, *old = h + (t * B + b0) * N, *gt = g + t * g_by_t + b0 * g_by_b;
        S *dt = d + (t * B + b0) * 3 * N, *e = dh + b0 * N;
        for (int64_t i = 0; i < rows; ++i) {
            const S *c = sums + i * wide, *ai = at + i * 3 * N;
            EACH(j, m) {
                Vec<S> v = load(e + i * N + j, m) + load(gt + i * g_by_b + j, m);
                if (t < T - 1) v += load(c + j, m);
                const Vec<S> u = load(ai + N + j, m), n = load(ai + 2 * N + j, m), keep = S(1) - u;
                store(dt + i * 3 * N + N + j, v * (n - load(old + i * N + j, m)) * u * keep, m);
                store(dt + i * 3 * N + 2 * N + j, v * u * (S(1) - n * n), m);
                store(e + i * N + j, v * keep, m);
            });
        }
        product<S>(rows, N, N, dt + 2 * N, 3 * N, P_n, sums, wide);
        for (int64_t i = 0; i < rows; ++i) {
            const S *c = sums + i * wide, *ai = at + i * 3 * N;
            EACH(j, m) {
                const Vec<S> r = load(ai + j, m), ds = load(c + j, m);
                store(dt + i * 3 * N + j, ds * load(old + i * N + j, m) * r * (S(1) - r), m);
                store(e + i * N + j, load(e + i * N + j, m) + ds * r, m);
            });
        }
        product<S>(rows, N, 2 * N, dt, 3 * N, P, sums, wide);
    }
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < N; ++j) dh[(b0 + i) * N + j] += sums[i * wide + j];
}

// sums [B, 4N] | packed W [N, 4N]
template <class S>
void lstm_rows(int64_t T, int64_t B, int64_t N, int64_t b0, int64_t rows, S* a, S* k, S* h, S* c, const S* P, S* sums) {
    const int64_t wide = width_of<S>(4 * N);
    for (int64_t t = 0; t < T; ++t) {
        S* at = a + (t * B + b0) * 4 * N;
        const int64_t old = (t * B + b0) * N, now = old + B * N;
        product<S>(rows, 4 * N, N, h + old, N, P, sums, wide);
        for (int64_t r = 0; r < rows; ++r, at += 4 * N) {
            const S* s = sums + r * wide;
            EACH(j, m) {
                const Vec<S> i = sigmoid<S>(load(at + j, m) + load(s + j, m));
                const Vec<S> f = sigmoid<S>(load(at + N + j, m) + load(s + N + j, m));
                const Vec<S> g = vtanh(load(at + 2 * N + j, m) + load(s + 2 * N + j, m));
                const Vec<S> o = sigmoid<S>(load(at + 3 * N + j, m) + load(s + 3 * N + j, m));
                const Vec<S> cell = f * load(c + old + r * N + j, m) + i * g, th = vtanh(cell);
                store(at + j, i, m), store(at + N + j, f, m), store(at + 2 * N + j, g, m), store(at + 3 * N + j, o, m);
                store(c + now + r * N + j, cell, m), store(k + old + r * N + j, th, m);
                store(h + now + r * N + j, o * th, m);
            });
        }
    }
}

// sums [B, N] | packed W [4N, N]
template <class S>
void lstm_back(int64_t T, int64_t B, int64_t N, int64_t b0, int64_t rows, const S* a, const S* k, const S* c, const S* P,
               const S* g, int64_t g_by_t, int64_t g_by_b, S* dh, S* dc, S* d, S* sums) {
    const int64_t wide = width_of<S>(N);
    for (int64_t t = T - 1; t >= 0; --t) {
        const S *at = a + (t * B + b0) * 4 * N, *kt = k + (t * B + b0) * N, *old = c + (t * B + b0) * N;
        const S* gt = g + t * g_by_t + b0 * g_by_b;
        S *dt = d + (t * B + b0) * 4 * N, *e = dh + b0 * N, *ec = dc + b0 * N;
        for (int64_t r = 0; r < rows; ++r, at += 4 * N, dt += 4 * N, kt += N, old += N, e += N, ec += N, gt += g_by_b) {
            const S* s = sums + r * wide;
            EACH(j, m) {
                const Vec<S> v = load(gt + j, m) + (t < T - 1 ? load(s + j, m) : load(e + j, m));
                const Vec<S> i = load(at + j, m), f = load(at + N + j, m), u = load(at + 2 * N + j, m);
                const Vec<S> o = load(at + 3 * N + j, m), th = load(kt + j, m);
                const Vec<S> cell = load(ec + j, m) + v * o * (S(1) - th * th);
                store(dt + j, cell * u * i * (S(1) - i), m);
                store(dt + N + j, cell * load(old + j, m) * f * (S(1) - f), m);
                store(dt + 2 * N + j, cell * i * (S(1) - u * u), m);
                store(dt + 3 * N + j, v * th * o * (S(1) - o), m);
                store(ec + j, cell * f, m);
            });
        }
        product<S>(rows, N, 4 * N, d + (t * B + b0) * 4 * N, 4 * N, P, sums, wide);
    }
    for (int64_t i = 0; i < rows; ++i) std::memcpy(dh + (b0 + i) * N, sums + i * wide, N * sizeof(S));
}

template <class S, int A>
INLINE Vec<S> activated(Vec<S> x) {
    if (A == TANH) return vtanh(x);
    if (A == SIGMOID) return sigmoid<S>(x);
    if (A == RELU) return pick<S>(x < S(0), Vec<S>{}, x);  // NaN stays NaN
    return x;
}
template <class S, int A>  // sigma' as a function of h = sigma(x)
INLINE Vec<S> slope(Vec<S> h) {
    if (A == TANH) return S(1) - h * h;
    if (A == SIGMOID) return h * (S(1) - h);
    if (A == RELU) return pick<S>(h > S(0), all(S(1)), Vec<S>{});
    return all(S(1));
}

template <class S, int A>
void elman_rows(int64_t T, int64_t B, int64_t N, int64_t b0, int64_t rows, const S* a, S* h, const S* P, S* sums) {
    const int64_t wide = width_of<S>(N);
    for (int64_t t = 0; t < T; ++t) {
        const S *old = h + (t * B + b0) * N, *at = a + (t * B + b0) * N;
        S* now = h + ((t + 1) * B + b0) * N;
        product<S>(rows, N, N, old, N, P, sums, wide);
        for (int64_t i = 0; i < rows; ++i)
            EACH(j, m) { store(now + i * N + j, activated<S, A>(load(at + i * N + j, m) + load(sums + i * wide + j, m)), m); });
    }
}

template <class S, int A>
void elman_back(int64_t T, int64_t B, int64_t N, int64_t b0, int64_t rows, const S* h, const S* P, const S* g,
                int64_t g_by_t, int64_t g_by_b, S* dh, S* d, S* sums) {
    const int64_t wide = width_of<S>(N);
    for (int64_t t = T - 1; t >= 0; --t) {
        const S *now = h + ((t + 1) * B + b0) * N, *gt = g + t * g_by_t + b0 * g_by_b;
        S *dt = d + (t * B + b0) * N, *e = dh + b0 * N;
        for (int64_t i = 0; i < rows; ++i) {
            EACH(j, m) {
                const Vec<S> v = load(gt + i * g_by_b + j, m) +
                                 (t < T - 1 ? load(sums + i * wide + j, m) : load(e + i * N + j, m));
                store(dt + i * N + j, v * slope<S, A>(load(now + i * N + j, m)), m);
            });
        }
        product<S>(rows, N, N, dt, N, P, sums, wide);
    }
    for (int64_t i = 0; i < rows; ++i) std::memcpy(dh + (b0 + i) * N, sums + i * wide, N * sizeof(S));
}

int64_t gates(int kind) { return kind == LSTM ? 4 : kind == ELMAN ? 1 : 3; }

// the sums of a tick and the packed matrix
template <class S>
int64_t room_of(int kind, int backward, int64_t B, int64_t N) {
    const int64_t G = gates(kind);
    const int64_t sums = B * width_of<S>(backward ? N : kind == BOOK_GRU ? 2 * N : G * N);
    if (kind == BOOK_GRU) return sums + N * width_of<S>(N) + (backward ? 2 * N * width_of<S>(N) : N * width_of<S>(2 * N));
    return sums + (backward ? G * N * width_of<S>(N) : N * width_of<S>(G * N));
}

INLINE int bad(int64_t T, int64_t B, int64_t N) { return T < 1 || B < 0 || N < 1; }

}  // namespace

#define CHECK(KIND, BACK)                                  \
    if (bad(T, B, N)) return BAD_SIZE;                     \
    if (n_room < room_of<S>(KIND, BACK, B, N)) return NO_ROOM; \
    S *sums = room, *P = room + B * width_of<S>((BACK) ? N : KIND == BOOK_GRU ? 2 * N : gates(KIND) * N);

namespace {

template <class S>
int gru_forward(int64_t T, int64_t B, int64_t N, S* a, S* q, S* h, const S* W, const S* b_n, S* room, int64_t n_room, int64_t threads) {
    if (!a || !q || !h || !W || !room) return BAD_POINTER;
    CHECK(GRU, 0)
    pack<S>(P, W, N, 3 * N, 1, N);
    by_rows(B, threads, [=](int64_t b0, int64_t n) { gru_rows<S>(T, B, N, b0, n, a, q, h, P, b_n, sums + b0 * width_of<S>(3 * N)); });
    return OK;
}

template <class S>
int gru_backward(int64_t T, int64_t B, int64_t N, const S* a, const S* q, const S* h, const S* W, const S* g, int64_t g_by_t,
                 int64_t g_by_b, S* dh, S* d, S* room, int64_t n_room, int64_t threads) {
    if (!a || !q || !h || !W || !g || !dh || !d || !room) return BAD_POINTER;
    CHECK(GRU, 1)
    // rows q, r, z of W [3N, N], whose own order is r, z, q: panel by panel
    for (int64_t j = 0, at = 0; j < N; j += PANEL<S>) {
        const int64_t left = N - j < PANEL<S> ? N - j : PANEL<S>, wide = width_of<S>(left);
        pack<S>(P + at, W + 2 * N * N + j, N, left, N, 1);
        pack<S>(P + at + N * wide, W + j, 2 * N, left, N, 1);
        at += 3 * N * wide;
    }
    by_rows(B, threads, [=](int64_t b0, int64_t n) {
        gru_back<S>(T, B, N, b0, n, a, q, h, P, g, g_by_t, g_by_b, dh, d, sums + b0 * width_of<S>(N));
    });
    return OK;
}

template <class S>
int book_forward(int64_t T, int64_t B, int64_t N, S* a, S* s, S* h, const S* W, S* room, int64_t n_room, int64_t threads) {
    if (!a || !s || !h || !W || !room) return BAD_POINTER;
    CHECK(BOOK_GRU, 0)
    S* P_n = P + N * width_of<S>(2 * N);
    pack<S>(P, W, N, 2 * N, 1, N);
    pack<S>(P_n, W + 2 * N * N, N, N, 1, N);
    by_rows(B, threads, [=](int64_t b0, int64_t n) { book_rows<S>(T, B, N, b0, n, a, s, h, P, P_n, sums + b0 * width_of<S>(2 * N)); });
    return OK;
}

template <class S>
int book_backward(int64_t T, int64_t B, int64_t N, const S* a, const S* h, const S* W, const S* g, int64_t g_by_t, int64_t g_by_b,
                  S* dh, S* d, S* room, int64_t n_room, int64_t threads) {
    if (!a || !h || !W || !g || !dh || !d || !room) return BAD_POINTER;
    CHECK(BOOK_GRU, 1)
    S* P_n = P + 2 * N * width_of<S>(N);
    pack<S>(P, W, 2 * N, N, N, 1);
    pack<S>(P_n, W + 2 * N * N, N, N, N, 1);
    by_rows(B, threads, [=](int64_t b0, int64_t n) {
        book_back<S>(T, B, N, b0, n, a, h, P, P_n, g, g_by_t, g_by_b, dh, d, sums + b0 * width_of<S>(N));
    });
    return OK;
}

template <class S>
int lstm_forward(int64_t T, int64_t B, int64_t N, S* a, S* k, S* h, S* c, const S* W, S* room, int64_t n_room, int64_t threads) {
    if (!a || !k || !h || !c || !W || !room) return BAD_POINTER;
    CHECK(LSTM, 0)
    pack<S>(P, W, N, 4 * N, 1, N);
    by_rows(B, threads, [=](int64_t b0, int64_t n) { lstm_rows<S>(T, B, N, b0, n, a, k, h, c, P, sums + b0 * width_of<S>(4 * N)); });
    return OK;
}

template <class S>
int lstm_backward(int64_t T, int64_t B, int64_t N, const S* a, const S* k, const S* c, const S* W, const S* g, int64_t g_by_t,
                  int64_t g_by_b, S* dh, S* dc, S* d, S* room, int64_t n_room, int64_t threads) {
    if (!a || !k || !c || !W || !g || !dh || !dc || !d || !room) return BAD_POINTER;
    CHECK(LSTM, 1)
    pack<S>(P, W, 4 * N, N, N, 1);
    by_rows(B, threads, [=](int64_t b0, int64_t n) {
        lstm_back<S>(T, B, N, b0, n, a, k, c, P, g, g_by_t, g_by_b, dh, dc, d, sums + b0 * width_of<S>(N));
    });
    return OK;
}

template <class S, int A>
int elman_forward_as(int64_t T, int64_t B, int64_t N, const S* a, S* h, const S* W, S* room, int64_t n_room, int64_t threads) {
    if (!a || !h || !W || !room) return BAD_POINTER;
    CHECK(ELMAN, 0)
    pack<S>(P, W, N, N, 1, N);
    by_rows(B, threads, [=](int64_t b0, int64_t n) { elman_rows<S, A>(T, B, N, b0, n, a, h, P, sums + b0 * width_of<S>(N)); });
    return OK;
}

template <class S, int A>
int elman_backward_as(int64_t T, int64_t B, int64_t N, const S* h, const S* W, const S* g, int64_t g_by_t, int64_t g_by_b, S* dh,
                      S* d, S* room, int64_t n_room, int64_t threads) {
    if (!h || !W || !g || !dh || !d || !room) return BAD_POINTER;
    CHECK(ELMAN, 1)
    pack<S>(P, W, N, N, N, 1);
    by_rows(B, threads, [=](int64_t b0, int64_t n) {
        elman_back<S, A>(T, B, N, b0, n, h, P, g, g_by_t, g_by_b, dh, d, sums + b0 * width_of<S>(N));
    });
    return OK;
}

}  // namespace

int unrolled_abi() { return UNROLLED_ABI; }
const char* unrolled_level() { return LEVEL; }

int64_t recurrence_room(int kind, int backward, int64_t B, int64_t N, int64_t bytes) {
    return bytes == 8 ? room_of<double>(kind, backward, B, N) : room_of<float>(kind, backward, B, N);
}

#define BY_ACTIVATION(F, ...)                                \
    switch (activation) {                                    \
        case TANH: return F<S, TANH>(__VA_ARGS__);           \
        case RELU: return F<S, RELU>(__VA_ARGS__);           \
        case SIGMOID: return F<S, SIGMOID>(__VA_ARGS__);     \
        case IDENTITY: return F<S, IDENTITY>(__VA_ARGS__);   \
        default: return UNKNOWN;                             \
    }

#define DEFINE(TYPE, NAME)                                                                                             \
    int gru_forward_##NAME(int64_t T, int64_t B, int64_t N, TYPE* a, TYPE* q, TYPE* h, const TYPE* W, const TYPE* b_n, \
                           TYPE* room, int64_t n_room, int64_t threads) {                                                 \
        return gru_forward<TYPE>(T, B, N, a, q, h, W, b_n, room, n_room, threads);                                     \
    }                                                                                                                  \
    int gru_backward_##NAME(int64_t T, int64_t B, int64_t N, const TYPE* a, const TYPE* q, const TYPE* h,              \
                            const TYPE* W, const TYPE* g, int64_t g_by_t, int64_t g_by_b, TYPE* dh, TYPE* d,           \
                            TYPE* room, int64_t n_room, int64_t threads) {                                                \
        return gru_backward<TYPE>(T, B, N, a, q, h, W, g, g_by_t, g_by_b, dh, d, room, n_room, threads);               \
    }                                                                                                                  \
    int book_gru_forward_##NAME(int64_t T, int64_t B, int64_t N, TYPE* a, TYPE* s, TYPE* h, const TYPE* W, TYPE* room, \
                                int64_t n_room, int64_t threads) {                                                        \
        return book_forward<TYPE>(T, B, N, a, s, h, W, room, n_room, threads);                                         \
    }                                                                                                                  \
    int book_gru_backward_##NAME(int64_t T, int64_t B, int64_t N, const TYPE* a, const TYPE* h, const TYPE* W,         \
                                 const TYPE* g, int64_t g_by_t, int64_t g_by_b, TYPE* dh, TYPE* d, TYPE* room,        \
                                 int64_t n_room, int64_t threads) {                                                       \
        return book_backward<TYPE>(T, B, N, a, h, W, g, g_by_t, g_by_b, dh, d, room, n_room, threads);                 \
    }                                                                                                                  \
    int lstm_forward_##NAME(int64_t T, int64_t B, int64_t N, TYPE* a, TYPE* k, TYPE* h, TYPE* c, const TYPE* W,        \
                            TYPE* room, int64_t n_room, int64_t threads) {                                                \
        return lstm_forward<TYPE>(T, B, N, a, k, h, c, W, room, n_room, threads);                                      \
    }                                                                                                                  \
    int lstm_backward_##NAME(int64_t T, int64_t B, int64_t N, const TYPE* a, const TYPE* k, const TYPE* c,             \
                             const TYPE* W, const TYPE* g, int64_t g_by_t, int64_t g_by_b, TYPE* dh, TYPE* dc,         \
                             TYPE* d, TYPE* room, int64_t n_room, int64_t threads) {                                      \
        return lstm_backward<TYPE>(T, B, N, a, k, c, W, g, g_by_t, g_by_b, dh, dc, d, room, n_room, threads);          \
    }                                                                                                                  \
    int elman_forward_##NAME(int64_t T, int64_t B, int64_t N, int64_t activation, const TYPE* a, TYPE* h, const TYPE* W,   \
                             TYPE* room, int64_t n_room, int64_t threads) {                                               \
        using S = TYPE;                                                                                                \
        BY_ACTIVATION(elman_forward_as, T, B, N, a, h, W, room, n_room, threads)                                       \
    }                                                                                                                  \
    int elman_backward_##NAME(int64_t T, int64_t B, int64_t N, int64_t activation, const TYPE* h, const TYPE* W,           \
                              const TYPE* g, int64_t g_by_t, int64_t g_by_b, TYPE* dh, TYPE* d, TYPE* room,           \
                              int64_t n_room, int64_t threads) {                                                          \
        using S = TYPE;                                                                                                \
        BY_ACTIVATION(elman_backward_as, T, B, N, h, W, g, g_by_t, g_by_b, dh, d, room, n_room, threads)               \
    }

DEFINE(float, f32)
DEFINE(double, f64)
