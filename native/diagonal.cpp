// The diagonal recurrence h_t = a_t h_{t-1} + b_t, forward and backward (batch-major, so each row is one stream).
#include "api.h"
#include "vector.h"

namespace {

template <class S>
int forward(int64_t B, int64_t T, int64_t N, const S* a, const S* b, const S* h_0, S* h) {
    if (B < 0 || T < 1 || N < 1) return BAD_SIZE;
    if (!a || !b || !h_0 || !h) return BAD_POINTER;
    constexpr int64_t W = WIDTH<S>;
    for (int64_t i = 0; i < B; ++i) {
        const S* old = h_0 + i * N;
        for (int64_t t = 0; t < T; ++t, a += N, b += N, old = h, h += N)
            for (int64_t j = 0; j < N; j += W) {
                const int64_t m = N - j;
                store(h + j, load(a + j, m) * load(old + j, m) + load(b + j, m), m);
            }
    }
    return OK;
}

// lambda_t = g_t + a_{t+1} lambda_{t+1};  db_t = lambda_t, da_t = lambda_t h_{t-1}, dh_0 = a_1 lambda_1
template <class S>
int backward(int64_t B, int64_t T, int64_t N, const S* a, const S* h_0, const S* h, const S* g, S* da, S* db, S* dh_0) {
    if (B < 0 || T < 1 || N < 1) return BAD_SIZE;
    if (!a || !h_0 || !h || !g || !da || !db || !dh_0) return BAD_POINTER;
    constexpr int64_t W = WIDTH<S>;
    for (int64_t i = 0; i < B; ++i) {
        for (int64_t t = T - 1; t >= 0; --t) {
            const int64_t at = (i * T + t) * N, next = at + N;
            const S* old = t ? h + at - N : h_0 + i * N;
            for (int64_t j = 0; j < N; j += W) {
                const int64_t m = N - j;
                Vec<S> l = load(g + at + j, m);
                if (t < T - 1) l += load(a + next + j, m) * load(db + next + j, m);
                store(db + at + j, l, m), store(da + at + j, l * load(old + j, m), m);
                if (!t) store(dh_0 + i * N + j, l * load(a + at + j, m), m);
            }
        }
    }
    return OK;
}

}  // namespace

#define DEFINE(S, NAME)                                                                                                \
    int diagonal_forward_##NAME(int64_t B, int64_t T, int64_t N, const S* a, const S* b, const S* h_0, S* h) {         \
        return forward<S>(B, T, N, a, b, h_0, h);                                                                      \
    }                                                                                                                  \
    int diagonal_backward_##NAME(int64_t B, int64_t T, int64_t N, const S* a, const S* h_0, const S* h, const S* g,    \
                                 S* da, S* db, S* dh_0) {                                                              \
        return backward<S>(B, T, N, a, h_0, h, g, da, db, dh_0);                                                       \
    }

DEFINE(float, f32)
DEFINE(double, f64)
