// Dense matrices: { rows, columns, cells } with cells a Float64Array, row by row. Vectors are Float64Arrays.
// A list of functions of the row (a basis, a design) is a matrix with one function a row, so that most
// products are dot products of rows.
const EPSILON = 2 ** -52;

function matrix(rows, columns) {
  return { rows, columns, cells: new Float64Array(rows * columns) };
}

function identity(size) {
  const result = matrix(size, size);
  for (let i = 0; i < size; i++) result.cells[i * size + i] = 1;
  return result;
}

function fromRows(rows, columns) {
  const result = matrix(rows.length, columns);
  rows.forEach((row, i) => result.cells.set(row, i * columns));
  return result;
}

function row(a, i) {
  return a.cells.subarray(i * a.columns, (i + 1) * a.columns);
}

function dot(x, y) {
  let sum = 0;
  for (let i = 0; i < x.length; i++) sum += x[i] * y[i];
  return sum;
}

function norm(x) {
  return Math.sqrt(dot(x, x));
}

// y + factor · x, in place.
function addScaled(y, factor, x) {
  for (let i = 0; i < x.length; i++) y[i] += factor * x[i];
  return y;
}

// A B.
function times(a, b) {
  const result = matrix(a.rows, b.columns);
  const { cells } = result;
  const [left, right, inner, width] = [a.cells, b.cells, a.columns, b.columns];
  for (let i = 0; i < a.rows; i++) {
    const start = i * width;
    for (let k = 0; k < inner; k++) {
      const factor = left[i * inner + k];
      if (factor === 0) continue;  // bases and designs are mostly zeros
      for (let j = 0, at = k * width; j < width; j++, at++) cells[start + j] += factor * right[at];
    }
  }
  return result;
}

// A Bᵀ.
function timesTransposed(a, b) {
  const result = matrix(a.rows, b.rows);
  for (let i = 0; i < a.rows; i++) {
    const left = row(a, i);
    for (let j = 0; j < b.rows; j++) result.cells[i * b.rows + j] = dot(left, row(b, j));
  }
  return result;
}

// A x.
function apply(a, x) {
  const result = new Float64Array(a.rows);
  for (let i = 0; i < a.rows; i++) result[i] = dot(row(a, i), x);
  return result;
}

// Aᵀ x: the combination of the rows of A.
function combine(a, x) {
  const result = new Float64Array(a.columns);
  for (let i = 0; i < a.rows; i++) addScaled(result, x[i], row(a, i));
  return result;
}

function transpose(a) {
  const result = matrix(a.columns, a.rows);
  for (let i = 0; i < a.rows; i++) {
    for (let j = 0; j < a.columns; j++) result.cells[j * a.rows + i] = a.cells[i * a.columns + j];
  }
  return result;
}

// B G Bᵀ, exactly symmetric: the quadratic form of the functions in B. B, mostly zeros, comes first each time.
function form(b, gram) {
  return symmetric(times(b, transpose(times(b, gram))));
}

function symmetric(a) {
  const n = a.rows;
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < i; j++) {
      const mean = 0.5 * (a.cells[i * n + j] + a.cells[j * n + i]);
      a.cells[i * n + j] = mean;
      a.cells[j * n + i] = mean;
    }
  }
  return a;
}

// Eigenvalues of a symmetric matrix, ascending, and the eigenvectors as the ROWS of `vectors`.
// Householder reflections make it tridiagonal, shifted QL rotations make it diagonal.
function eigen(a) {
  const { diagonal, side, vectors } = tridiagonal(a);
  const size = diagonal.length;
  rotateToDiagonal(diagonal, side, vectors);
  const order = Array.from(diagonal.keys()).sort((i, j) => diagonal[i] - diagonal[j]);
  const sorted = matrix(size, size);
  order.forEach((from, to) => sorted.cells.set(row(vectors, from), to * size));
  return { values: Float64Array.from(order, (i) => diagonal[i]), vectors: sorted };
}

// A = QᵀTQ with T tridiagonal (diagonal, side) and Q in the rows of `vectors`.
function tridiagonal(a) {
  const n = a.rows;
  const work = { rows: n, columns: n, cells: Float64Array.from(a.cells) };
  const side = new Float64Array(n);
  const mirrors = [];
  for (let k = 0; k + 2 < n; k++) {
    const v = new Float64Array(n);
    for (let i = k + 1; i < n; i++) v[i] = work.cells[i * n + k];
    const length = norm(v);
    const below = Math.abs(v[k + 1]);
    if (length === 0 || length === below) {  // nothing to clear
      side[k] = v[k + 1];
      continue;
    }
    side[k] = v[k + 1] > 0 ? -length : length;
    v[k + 1] -= side[k];
    const beta = 2 / dot(v, v);
    const p = new Float64Array(n);
    for (let i = k + 1; i < n; i++) {
      let sum = 0;
      for (let j = k + 1; j < n; j++) sum += work.cells[i * n + j] * v[j];
      p[i] = beta * sum;
    }
    addScaled(p, -0.5 * beta * dot(v, p), v);
    for (let i = k + 1; i < n; i++) {
      const vi = v[i];
      const pi = p[i];
      for (let j = k + 1; j < n; j++) work.cells[i * n + j] -= vi * p[j] + pi * v[j];
    }
    mirrors.push({ k, v, beta });
  }
  if (n > 1) side[n - 2] = work.cells[(n - 1) * n + n - 2];
  const vectors = identity(n);
  for (const { k, v, beta } of mirrors.reverse()) {
    for (let i = k + 1; i < n; i++) {
      const target = row(vectors, i);
      let sum = 0;
      for (let j = k + 1; j < n; j++) sum += target[j] * v[j];
      const factor = -beta * sum;
      for (let j = k + 1; j < n; j++) target[j] += factor * v[j];
    }
  }
  const diagonal = new Float64Array(n);
  for (let i = 0; i < n; i++) diagonal[i] = work.cells[i * n + i];
  return { diagonal, side, vectors };
}

function rotateToDiagonal(diagonal, side, vectors) {
  const n = diagonal.length;
  let scale = 0;
  for (let i = 0; i < n; i++) scale = Math.max(scale, Math.abs(diagonal[i]) + Math.abs(side[i]));
  const negligible = 0.5 * EPSILON * scale;
  for (let first = 0; first < n; first++) {
    for (let sweep = 0; ; sweep++) {
      let last = first;
      while (last < n - 1 && Math.abs(side[last]) > negligible) last++;
      if (last === first) break;
      if (sweep === 60) throw new Error("the eigenvalues did not converge");
      qlSweep(diagonal, side, vectors, first, last);
    }
  }
}

// One implicit QL step on the block first…last, with Wilkinson's shift.
function qlSweep(diagonal, side, vectors, first, last) {
  const n = vectors.columns;
  const cells = vectors.cells;
  const half = (diagonal[first + 1] - diagonal[first]) / (2 * side[first]);
  const root = Math.sqrt(half * half + 1);
  let bulge = diagonal[last] - diagonal[first] + side[first] / (half + (half < 0 ? -root : root));
  let sine = 1;
  let cosine = 1;
  let moved = 0;
  for (let i = last - 1; i >= first; i--) {
    const f = sine * side[i];
    const b = cosine * side[i];
    const r = Math.sqrt(f * f + bulge * bulge);
    side[i + 1] = r;
    if (r === 0) {
      diagonal[i + 1] -= moved;
      side[last] = 0;
      return;
    }
    sine = f / r;
    cosine = bulge / r;
    const corner = diagonal[i + 1] - moved;
    const turn = (diagonal[i] - corner) * sine + 2 * cosine * b;
    moved = sine * turn;
    diagonal[i + 1] = corner + moved;
    bulge = cosine * turn - b;
    for (let k = i * n, below = k + n, end = below; k < end; k++, below++) {
      const upper = cells[k];
      const lower = cells[below];
      cells[below] = sine * upper + cosine * lower;
      cells[k] = cosine * upper - sine * lower;
    }
  }
  diagonal[first] -= moved;
  side[first] = bulge;
  side[last] = 0;
}

// Vᵀ diag(f(w)) V: a function of a symmetric matrix.
function spectral(found, change) {
  const scaled = matrix(found.vectors.rows, found.vectors.columns);
  for (let i = 0; i < scaled.rows; i++) addScaled(row(scaled, i), change(found.values[i]), row(found.vectors, i));
  return symmetric(times(transpose(found.vectors), scaled));
}

// Orthonormal rows with the span of the rows of `a`, and the upper triangle R with a_j = Σ_i R_ij b_i.
// Gram–Schmidt, twice for each row: after the second pass nothing but rounding is left.
function orthonormal(a) {
  const basis = matrix(a.rows, a.columns);
  const triangle = matrix(a.rows, a.rows);
  const done = [];
  let smallest = Infinity;
  let largest = 0;
  for (let j = 0; j < a.rows; j++) {
    const current = row(basis, j);
    current.set(row(a, j));
    let overlaps = true;
    for (let pass = 0; pass < 2 && overlaps; pass++) {
      overlaps = false;
      for (let i = 0; i < j; i++) {
        const along = dot(done[i], current);
        if (along === 0) continue;
        overlaps = true;
        triangle.cells[i * a.rows + j] += along;
        addScaled(current, -along, done[i]);
      }
    }
    done.push(current);
    const size = norm(current);
    triangle.cells[j * a.rows + j] = size;
    smallest = Math.min(smallest, size);
    largest = Math.max(largest, size);
    if (size > 0) for (let k = 0; k < a.columns; k++) current[k] /= size;
  }
  return { basis, triangle, independent: a.rows === 0 || smallest > 1e-8 * largest };
}

// R⁻¹ of an upper triangle.
function triangleInverse(triangle) {
  const n = triangle.rows;
  const inverse = matrix(n, n);
  for (let j = 0; j < n; j++) {
    inverse.cells[j * n + j] = 1 / triangle.cells[j * n + j];
    for (let i = j - 1; i >= 0; i--) {
      let sum = 0;
      for (let k = i + 1; k <= j; k++) sum += triangle.cells[i * n + k] * inverse.cells[k * n + j];
      inverse.cells[i * n + j] = -sum / triangle.cells[i * n + i];
    }
  }
  return inverse;
}

// A⁻¹ of any square matrix, by elimination with the largest pivot of each column.
function inverse(a) {
  const n = a.rows;
  const left = { rows: n, columns: n, cells: Float64Array.from(a.cells) };
  const right = identity(n);
  for (let k = 0; k < n; k++) {
    let pivot = k;
    for (let i = k + 1; i < n; i++) if (Math.abs(left.cells[i * n + k]) > Math.abs(left.cells[pivot * n + k])) pivot = i;
    for (const side of [left, right]) {
      const kept = Float64Array.from(row(side, k));
      row(side, k).set(row(side, pivot));
      row(side, pivot).set(kept);
    }
    const size = left.cells[k * n + k];
    for (const side of [left, right]) row(side, k).forEach((x, j, line) => { line[j] = x / size; });
    for (let i = 0; i < n; i++) {
      const factor = left.cells[i * n + k];
      if (i === k || factor === 0) continue;
      addScaled(row(left, i), -factor, row(left, k));
      addScaled(row(right, i), -factor, row(right, k));
    }
  }
  return right;
}

// H = I − f·mmᵀ with H e₀ along `direction`: its other rows span all that is orthogonal to `direction`.
function reflection(direction) {
  const size = norm(direction);
  const mirror = Float64Array.from(direction, (x) => x / size);
  mirror[0] += mirror[0] >= 0 ? 1 : -1;
  const factor = 2 / dot(mirror, mirror);
  return {
    // H x, or H y for the y = (0, x).
    vector: (x) => addScaled(Float64Array.from(x), -factor * dot(mirror, x), mirror),
    // H A H of a symmetric A, in O(n²).
    form(a) {
      const toward = apply(a, mirror);
      const half = addScaled(toward.map((x) => factor * x), -0.5 * factor * factor * dot(mirror, toward), mirror);
      const result = matrix(a.rows, a.rows);
      for (let i = 0, at = 0; i < a.rows; i++) {
        for (let j = 0; j < a.rows; j++, at++) {
          result.cells[at] = a.cells[at] - mirror[i] * half[j] - half[i] * mirror[j];
        }
      }
      return result;
    },
  };
}

// All but the first row (and column).
function tail(a) {
  const size = a.rows - 1;
  const result = matrix(size, size);
  for (let i = 0; i < size; i++) row(result, i).set(row(a, i + 1).subarray(1));
  return result;
}

// The solution of least norm of (A + shift·I) x = right, for the eigenvalues and vectors of a symmetric A.
function leastSquares(found, right, shift = 0) {
  let largest = 0;
  for (const value of found.values) largest = Math.max(largest, Math.abs(value + shift));
  const along = apply(found.vectors, right);
  for (let i = 0; i < along.length; i++) {
    const value = found.values[i] + shift;
    along[i] = Math.abs(value) > 1e-13 * largest ? along[i] / value : 0;
  }
  return combine(found.vectors, along);
}

export {
  matrix, identity, fromRows, row, dot, norm, addScaled, times, timesTransposed, apply, combine, transpose,
  form, symmetric, eigen, spectral, orthonormal, triangleInverse, inverse, reflection, tail, leastSquares,
};
