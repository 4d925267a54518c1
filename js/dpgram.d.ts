/** Regressions, correlations and principal components from a differentially private release. */

export type Kind = "population" | "table";
export type Method = "auto" | "ols" | "ridge";

/** Thrown where the noise, or the schema, does not let anybody answer. */
export class Refusal extends Error {}

export interface Coefficient {
  name: string;
  /** Un-shrunken; null where the noise leaves no interval. */
  estimate: number | null;
  /** Standard error: sampling and privacy noise. */
  error: number | null;
  low: number | null;
  high: number | null;
  /** Two-sided, of being zero. */
  p: number | null;
}

export interface Refused {
  refused: string;
}

export interface Estimate {
  estimate: number;
  error: number;
  low: number;
  high: number;
}

export interface Test {
  statistic: number;
  numerator: number;
  /** null: the statistic is chi squared. */
  denominator: number | null;
  p: number;
}

export interface Prediction {
  /** By the coefficients that predict best. */
  fitted: number;
  /** By the un-shrunken ones, with an interval for the expectation and one for a new observation. */
  mean: number;
  low: number;
  high: number;
  newLow: number;
  newHigh: number;
}

export interface RegressOptions {
  method?: Method;
  /** The penalty of `ridge`, in encoded units; null takes it from the noise. */
  alpha?: number | null;
  /** True where the release has a constant column. */
  intercept?: boolean;
  kind?: Kind;
  level?: number;
  /** The level to compare with, by column; the most frequent one by default. */
  reference?: Record<string, string>;
}

export class Regression {
  private constructor();
  readonly names: string[];
  readonly fitted: number[];
  readonly effectiveParameters: number | null;
  readonly coefficients: Coefficient[];
  readonly refusal: string | null;
  readonly degrees: number | null;
  readonly robust: boolean;
  readonly meaning: string;
  readonly cautions: string[];
  readonly rSquared: Estimate | Refused;
  readonly residualVariance: { estimate: number } | Refused;
  readonly covariance: number[][];
  test(...columns: string[]): Test | Refused;
  predict(person: Record<string, number | string | boolean | Date>): Prediction | ({ fitted: number } & Refused);
}

export class Release {
  /** What `release.to_javascript(path)` in Python writes, parsed. */
  constructor(facts: object);
  readonly rows: number | null;
  /** What `rows` is, in words: where long rows count less, it is their weight. */
  readonly counted: string;
  readonly columns: string[];
  readonly targets: string[];
  readonly noise: { diagonalSd: number; offdiagonalSd: number; added: boolean };
  regress(target: string, on: string[], options?: RegressOptions): Regression;
  /** Of all columns but products and powers. */
  correlation(options?: { kind?: Kind; level?: number }): {
    names: string[];
    estimate: number[][];
    low: number[][];
    high: number[][];
    /** How they differ from the correlations of the rows that came in. */
    cautions: string[];
  };
  /** By default of all columns but products and powers. */
  components(on?: string[], options?: { standardise?: boolean }): {
    names: string[];
    labels: string[];
    list: { variance: number; explained: number; stable: boolean; sine: number; loadings: number[] }[];
    noiseReach: number;
    cautions: string[];
  };
}

/** The release in this JSON text. */
export function read(text: string): Release;
