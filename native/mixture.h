// The mixture of several distributions over n choices: layers/parts/ensemble.py, and gate.py for weights of a position.
#pragma once
#include "steps.h"

constexpr int64_t MOST_MEMBERS = 32;

template <class S>
struct Certainty {  // of outputs x: p_j = exp((x_j - best) / tau - log_sum)
    S best, log_sum, entropy;
};

template <class S>
static Certainty<S> certainty(const S* x, int64_t n, S scale) {
    S best = x[0];
    for (int64_t j = 1; j < n; ++j) best = x[j] > best ? x[j] : best;
    Vec<S> sums = {}, products = {};
    EVERY(j, m) {
        Vec<S> d = (load(x + j, m) - best) * scale;
        d = pick<S>(d < S(-1e4), all(S(-1e4)), d);  // p log p is 0 there, also for -infinity
        const Vec<S> e = vexp(d), product = e * d;
        if (m < WIDTH<S>)
            for (int64_t i = 0; i < m; ++i) sums[0] += e[i], products[0] += product[i];
        else
            sums += e, products += product;
    }
    const S sum = total<S>(sums), log_sum = std::log(sum);
    return {best, log_sum, log_sum - total<S>(products) / sum};
}

template <class S>
struct Weights {  // of K members: [K], and [K], [K, 4 K], [2 K], [2 K]; or no b: constant weights
    const S *log_w, *b, *A, *mean, *deviation;
};

// log w of a position: softmax(log w + b + A (z, z^2)) of how sure members are
template <class S>
static void log_weights(const Weights<S>& by, int64_t K, const Certainty<S>* sure, S* log_w) {
    for (int64_t k = 0; k < K; ++k) log_w[k] = by.log_w[k];
    if (!by.b) return;
    S z[4 * MOST_MEMBERS];
    for (int64_t i = 0; i < 2 * K; ++i) {
        const S c = i % 2 ? sure[i / 2].entropy : -sure[i / 2].log_sum, far = (c - by.mean[i]) / by.deviation[i];
        z[i] = far < S(-4) ? S(-4) : far > S(4) ? S(4) : far;
        z[2 * K + i] = z[i] * z[i];
    }
    S best = -INFINITY, sum = 0;
    for (int64_t k = 0; k < K; ++k) {
        log_w[k] += by.b[k];
        for (int64_t i = 0; i < 4 * K; ++i) log_w[k] += by.A[k * 4 * K + i] * z[i];
        best = log_w[k] > best ? log_w[k] : best;
    }
    for (int64_t k = 0; k < K; ++k) sum += std::exp(log_w[k] - best);
    for (int64_t k = 0; k < K; ++k) log_w[k] -= best + std::log(sum);
}

// out = tau log sum_k w_k p_k, of outputs x [K, n]
template <class S>
static int mixture(const Weights<S>& by, int64_t K, int64_t n, S tau, const S* x, S* out) {
    if (K < 1 || K > MOST_MEMBERS) return BAD_SIZE;
    Certainty<S> sure[MOST_MEMBERS];
    S log_w[MOST_MEMBERS];
    const S scale = S(1) / tau;
    for (int64_t k = 0; k < K; ++k) sure[k] = certainty<S>(x + k * n, n, scale);
    log_weights<S>(by, K, sure, log_w);
    for (int64_t k = 0; k < K; ++k) log_w[k] -= sure[k].log_sum;
    EVERY(j, m) {
        Vec<S> best = all(S(-INFINITY)), sum = {};
        const auto part = [&](int64_t k) { return (load(x + k * n + j, m) - sure[k].best) * scale + log_w[k]; };
        for (int64_t k = 0; k < K; ++k) {
            const Vec<S> log_p = part(k);
            best = pick<S>((log_p > best) | (log_p != log_p), log_p, best);  // what is no number stays
        }
        for (int64_t k = 0; k < K; ++k) sum += vexp(part(k) - best);
        store(out + j, tau * pick<S>(best == S(-INFINITY), best, best + vlog(sum)), m);
    }
    return OK;
}
