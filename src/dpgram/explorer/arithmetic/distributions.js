// Tails and quantiles of the normal and of Student's t with any, even fractional, number of degrees.
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

export { upperTail, upperQuantile };
