// Tails and quantiles of the normal, of Student's t, of χ² and of F, with any, even fractional, number of degrees.
// Gauss–Legendre nodes and weights on (-1, 1), by Newton's method on the Legendre polynomial.
function gaussLegendre(count) {
  const nodes = [];
  for (let i = 0; i < count; i++) {
    let x = Math.cos((Math.PI * (i + 0.75)) / (count + 0.5));
    let slope = 1;
    for (let step = 0; step < 100; step++) {
      let before = 1;
      let value = x;
      for (let k = 2; k <= count; k++) [before, value] = [value, ((2 * k - 1) * x * value - (k - 1) * before) / k];
      slope = (count * (x * value - before)) / (x * x - 1);
      const change = value / slope;
      x -= change;
      if (Math.abs(change) < 1e-15) break;
    }
    nodes.push([x, 2 / ((1 - x * x) * slope * slope)]);
  }
  return nodes;
}

const NODES = gaussLegendre(24);
const PANELS = 6;

// log Γ(z + ½)/Γ(z): by the asymptotic series for large z, and by r(z) = r(z + 1)·z/(z + ½) up to there.
function logHalfStep(z) {
  let climbed = 0;
  while (z < 40) {
    climbed += Math.log(z / (z + 0.5));
    z += 1;
  }
  const inverse = 1 / z;
  const series = inverse * (-1 / 8 + inverse * inverse * (1 / 192 - (inverse * inverse) / 640));
  return climbed + 0.5 * Math.log(z) + series;
}

// P(T > t) for t ≥ 0; `degrees` null means the normal law.
//
// With s = √((ν+1)·log(1 + t²/ν)) the density of T is C·exp(-s²/2)·dt/ds, close to a normal one for every ν,
// so the tail is integrated in s, where it has the same short reach for all of them.
function upperTail(t, degrees) {
  const normal = degrees === null;
  const from = normal ? t : Math.sqrt((degrees + 1) * Math.log1p((t * t) / degrees));
  const constant = normal
    ? 1 / Math.sqrt(2 * Math.PI)
    : Math.exp(logHalfStep(0.5 * degrees) - 0.5 * Math.log(Math.PI * degrees));
  const decay = normal ? 1 : degrees / (degrees + 1);
  // Beyond `reach` the rest is below e^-40 of the whole: -decay·(from·u + u²/2) = -40.
  const reach = (Math.sqrt(from * from + 80 / decay) - from);
  let sum = 0;
  for (let panel = 0; panel < PANELS; panel++) {
    const low = (reach * panel) / PANELS;
    for (const [node, weight] of NODES) {
      const u = low + (0.5 * reach * (node + 1)) / PANELS;
      sum += weight * Math.exp(-u * (from + 0.5 * u)) * (normal ? 1 : stretch(from + u, degrees));
    }
  }
  return constant * Math.exp(-0.5 * from * from) * sum * ((0.5 * reach) / PANELS);
}

// dt/ds for t = √(ν(e^(s²/(ν+1)) − 1)).
function stretch(s, degrees) {
  const power = (s * s) / (degrees + 1);
  if (power < 1e-12) return Math.sqrt(degrees / (degrees + 1));
  return (Math.sqrt(degrees) * Math.exp(power) * s) / ((degrees + 1) * Math.sqrt(Math.expm1(power)));
}

function density(t, degrees) {
  if (degrees === null) return Math.exp(-0.5 * t * t) / Math.sqrt(2 * Math.PI);
  const constant = logHalfStep(0.5 * degrees) - 0.5 * Math.log(Math.PI * degrees);
  return Math.exp(constant - 0.5 * (degrees + 1) * Math.log1p((t * t) / degrees));
}

// The q with P(T > q) = tail < ½. The tail is convex, so Newton's method climbs to q from below.
function upperQuantile(tail, degrees) {
  let q = 0;
  for (let step = 0; step < 200; step++) {
    const change = (upperTail(q, degrees) - tail) / density(q, degrees);
    q += change;
    if (Math.abs(change) <= 1e-14 * Math.max(q, 1)) break;
  }
  return q;
}

// log Γ(z), by Stirling's series above 15 and by Γ(z + 1) = zΓ(z) up to there.
function logGamma(z) {
  let climbed = 0;
  while (z < 15) {
    climbed += Math.log(z);
    z += 1;
  }
  return (z - 0.5) * Math.log(z) - z + 0.5 * Math.log(2 * Math.PI) + stirling(z) - climbed;
}

function stirling(z) {
  const square = 1 / (z * z);
  return (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))) / z;
}

// log Γ(a)/Γ(a + b) without the difference of two large numbers.
function logGammaRatio(a, b) {
  if (a < 15) return logGamma(a) - logGamma(a + b);
  return -(a - 0.5) * Math.log1p(b / a) - b * Math.log(a + b) + b + stirling(a) - stirling(a + b);
}

// P(χ² > x): the upper incomplete gamma function, by its series or its continued fraction.
function chiSquareTail(x, degrees) {
  if (x <= 0) return 1;
  const [shape, at] = [0.5 * degrees, 0.5 * x];
  const front = Math.exp(shape * Math.log(at) - at - logGamma(shape));
  if (at < shape + 1) {
    let [term, sum] = [1 / shape, 1 / shape];
    for (let k = 1; term > 1e-17 * sum && k < 100_000; k++) sum += term *= at / (shape + k);
    return 1 - front * sum;
  }
  return front * fraction((k) => (k === 0 ? at + 1 - shape : at + 2 * k + 1 - shape), (k) => -k * (k - shape));
}

// P(F > f), the regularised incomplete beta function I_x(d₂/2, d₁/2) at x = d₂/(d₂ + d₁f); d₂ null: χ²/d₁.
function fTail(f, first, second) {
  if (f <= 0) return 1;
  if (second === null) return chiSquareTail(f * first, first);
  const ratio = (first * f) / second;
  const [x, y] = [1 / (1 + ratio), ratio / (1 + ratio)];
  const [a, b] = [0.5 * second, 0.5 * first];
  const front = Math.exp(-a * Math.log1p(ratio) + b * Math.log(y) - logGammaRatio(a, b) - logGamma(b));
  return x < (a + 1) / (a + b + 2) ? (front * betaFraction(x, a, b)) / a : 1 - (front * betaFraction(y, b, a)) / b;
}

function betaFraction(x, a, b) {
  const numerator = (k) => {
    const m = Math.floor(k / 2);
    return k % 2 ? (-(a + m) * (a + b + m) * x) / ((a + k - 1) * (a + k)) : (m * (b - m) * x) / ((a + k - 1) * (a + k));
  };
  return fraction(() => 1, numerator);
}

// 1/(b₀ + a₁/(b₁ + a₂/(b₂ + …))), by Lentz.
function fraction(b, a) {
  let value = b(0) || 1e-300;
  let [up, down] = [value, 0];
  for (let k = 1; k < 100_000; k++) {
    down = 1 / (b(k) + a(k) * down || 1e-300);
    up = b(k) + a(k) / up || 1e-300;
    const change = up * down;
    value *= change;
    if (Math.abs(change - 1) < 1e-15) break;
  }
  return 1 / value;
}

// The f with P(F > f) = tail, by halving.
function fQuantile(tail, first, second) {
  let [low, high] = [0, 1];
  while (fTail(high, first, second) > tail) [low, high] = [high, 2 * high];
  for (let step = 0; step < 100; step++) {
    const middle = 0.5 * (low + high);
    if (fTail(middle, first, second) > tail) low = middle;
    else high = middle;
  }
  return 0.5 * (low + high);
}

// P(Z ≤ z) of the normal law.
function normalBelow(z) {
  return z > 0 ? 1 - upperTail(z, null) : upperTail(-z, null);
}

export { upperTail, upperQuantile, chiSquareTail, fTail, fQuantile, normalBelow };
