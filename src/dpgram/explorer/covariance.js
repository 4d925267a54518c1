// Correlations and principal components, as in analysis/descriptive.py and analysis/pca.py.
(function (dpgram) {
  "use strict";

  const {
    matrix, fromRows, row, dot, addScaled, times, timesTransposed, apply, form, eigen, spectral, reflection,
  } = dpgram.algebra;
  const { Refusal, TOO_NOISY } = dpgram.moments;

  // The correlation matrix of all columns but the constant; NaN where the noise swallowed a variance.
  function correlation(moments) {
    if (!moments.hasConstant) throw new Refusal("This release has no constant column, so it has no means.");
    const { gram, width } = moments;
    const corner = gram.cells[0];
    if (corner <= 0) throw new Refusal(TOO_NOISY);
    const size = width - 1;
    const rows = corner / moments.columns[0].weight ** 2;
    let spread = matrix(size, size);
    for (let i = 0; i < size; i++) {
      for (let j = 0; j < size; j++) {
        const product = (gram.cells[i + 1] * gram.cells[j + 1]) / corner;
        spread.cells[i * size + j] = (gram.cells[(i + 1) * width + j + 1] - product) / rows;
      }
    }
    spread = spectral(eigen(spread), (value) => Math.max(value, 0));
    const deviation = Array.from({ length: size }, (_, i) => {
      const variance = spread.cells[i * size + i];
      return variance > 0 ? Math.sqrt(variance) : NaN;
    });
    return deviation.map((left, i) =>
      deviation.map((right, j) => {
        if (i === j) return Number.isNaN(left) ? NaN : 1;
        return Math.min(Math.max(spread.cells[i * size + j] / (left * right), -1), 1);
      }),
    );
  }

  // Components of the columns at `positions`, largest variance first, with how far noise may have turned each.
  function components(moments, positions, standardise) {
    const { noise, gram } = moments;
    const { functions, rows } = centredColumns(moments, positions);
    const scales = standardise ? deviations(moments, positions, functions, rows) : positions.map(() => 1);
    const scaled = fromRows(
      positions.map((_, i) => row(functions, i).map((x) => x / scales[i])), moments.width,
    );
    const free = freeDirections(moments, positions, scales);
    if (free.rows === 0) throw new Refusal("No columns are left.");
    const turnedAxes = times(free, scaled);
    const covariance = form(turnedAxes, gram);
    for (let i = 0; i < covariance.cells.length; i++) covariance.cells[i] /= rows;
    const found = eigen(covariance);
    const count = found.values.length;
    const values = Float64Array.from(found.values).reverse();
    const order = Array.from({ length: count }, (_, i) => count - 1 - i);
    const directions = fromRows(order.map((i) => row(found.vectors, i)), count);
    const turned = times(directions, turnedAxes);
    const inner = timesTransposed(turned, turned);
    const size = (i) => inner.cells[i * count + i];
    const off = noise.offdiagonalSd ** 2;
    const largest = Math.max(...order.map(size));
    const reach = (noise.expectedNorm(count) * largest) / rows;
    const loadings = times(directions, free);
    const total = values.reduce((sum, x) => sum + x, 0);
    const list = Array.from(values, (variance, i) => {
      let gap = Infinity;
      let square = 0;
      for (let j = 0; j < count; j++) {
        if (j === i) continue;
        const distance = Math.abs(variance - values[j]);
        gap = Math.min(gap, distance);
        square += (off * (size(i) * size(j) + inner.cells[i * count + j] ** 2)) / (rows * distance) ** 2;
      }
      return {
        variance,
        explained: total > 0 ? Math.min(Math.max(variance, 0) / total, 1) : 0,
        stable: gap > 2 * reach,
        sine: Number.isFinite(square) ? Math.sqrt(square) : 1,
        loadings: signed(row(loadings, i)),
      };
    });
    return { names: positions.map((i) => moments.columns[i].name), list, noiseReach: reach };
  }

  // The columns less their noisy means, as functions of the row.
  function centredColumns(moments, positions) {
    const { gram, rows, constants, noise, width } = moments;
    if (rows === null) throw new Refusal("This release has no constant column, so it has no covariances.");
    const axes = positions.map((position) => {
      const axis = new Float64Array(width);
      axis[position] = 1;
      return moments.project(axis);
    });
    if (moments.constantVector !== null) {
      const constant = moments.project(moments.constantVector);
      if (rows <= constants.count_to_noise * noise.diagonalSd * dot(constant, constant)) throw new Refusal(TOO_NOISY);
      const toward = apply(gram, constant);
      for (const axis of axes) addScaled(axis, -dot(axis, toward) / rows, constant);
    }
    return { functions: fromRows(axes, width), rows };
  }

  function deviations(moments, positions, functions, rows) {
    const drowned = [];
    const result = positions.map((position, i) => {
      const f = row(functions, i);
      const variance = dot(f, apply(moments.gram, f)) / rows;
      const noise = (moments.noise.diagonalSd * dot(f, f)) / rows;
      if (variance <= 3 * noise) drowned.push(moments.columns[position].name);
      return Math.sqrt(variance);
    });
    if (drowned.length) {
      throw new Refusal(
        "The variance of a column does not stand clear of the noise, so it cannot be standardised: " +
          drowned.slice(0, 10).join(", "),
      );
    }
    return result;
  }

  // Orthonormal rows for all combinations that can vary: the levels of a whole group add up to one, always.
  function freeDirections(moments, positions, scales) {
    const rows = [];
    const taken = new Set();
    const groups = moments.facts.complete_groups
      ? moments.declared.filter((column) => column.group)
      : [];
    for (const group of groups) {
      const members = group.positions.map((i) => positions.indexOf(i));
      if (members.includes(-1)) continue;
      const still = Float64Array.from(members, (at, k) => scales[at] / moments.columns[group.positions[k]].weight);
      const turn = reflection(still);
      for (let i = 1; i < members.length; i++) {
        const direction = new Float64Array(positions.length);
        turn.vector(members.map((_, k) => (k === i ? 1 : 0))).forEach((x, k) => { direction[members[k]] = x; });
        rows.push(direction);
      }
      members.forEach((at) => taken.add(at));
    }
    positions.forEach((_, at) => {
      if (taken.has(at)) return;
      const direction = new Float64Array(positions.length);
      direction[at] = 1;
      rows.push(direction);
    });
    return fromRows(rows, positions.length);
  }

  // The largest entry is positive.
  function signed(loadings) {
    let at = 0;
    loadings.forEach((x, i) => { if (Math.abs(x) > Math.abs(loadings[at])) at = i; });
    const sign = loadings[at] < 0 ? -1 : 1;
    return Array.from(loadings, (x) => sign * x);
  }

  dpgram.covariance = { correlation, components };
})(globalThis.dpgram ??= {});
