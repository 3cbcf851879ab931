export interface Progress {
  stage: string;
  done: number;
  total: number;
  note: string;
}

export interface ModelSource {
  name: string;
  url: string;
  size?: number;
  sha256?: string;
  parts?: string[];
}

export interface PageSnapshot {
  html: string;
  url: string;
  title: string;
  language?: string;
  selection?: string;
}

export interface Handlers {
  onText?: (text: string) => void;
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
}

export interface LoadOptions {
  model: string | ModelSource;
  context?: number;
  kv?: 'f16' | 'f32';
  memory?: 'off' | 'conversation' | 'origin';
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
  runtime?: string;
  worker?: string;
}

export interface AskOptions extends Handlers {
  page?: PageSnapshot;
  text?: string;
  maxTokens?: number;
  mode?: string;
  window?: number;
  budget?: number;
  sampling?: SamplingOptions;
  onStep?: (step: Step) => void;
}

export interface Token {
  id: number;
  text: string;
}

export interface Step {
  record: [tokens: number, matchLength: number, width: number];
  tokens: Token[];
  tree: (Token & { parent: number })[];
}

export interface SamplingOptions {
  temperature?: number;
  top_k?: number;
  top_p?: number;
  min_p?: number;
  repetition_penalty?: number;
  presence_penalty?: number;
  frequency_penalty?: number;
  logit_bias?: [token: number, bias: number][];
  seed?: number;
}

export interface Reply {
  answer: string;
  prompt_ids: number[];
  reply_ids: number[];
  mode: string;
  adapter: string;
  finish_reason: string;
  times: { load: number; prefill: number; first_token: number; decode: number };
  tokens_per_second: number;
  submits: number;
  maps: number;
  dispatches: number;
  steps: number;
  widths: Record<string, number>;
  warning: string;
  records: [tokens: number, matchLength: number, width: number][];
  windows: [width: number, steps: number, seconds: number][];
}

export interface Loaded {
  context: number;
  gpu_bytes: { weights: number; kv_cache: number };
  fetched: number;
  not_kept: string;
  warning: string;
  calibration: { costs: Record<string, number>; window: number } | null;
  load: number;
}

export interface Perplexity {
  perplexity: number;
  adapter: string;
  dispatches: number;
}

export class PywebError extends Error {
  constructor(parts: { name: string; message: string; remedy?: string });
  remedy: string;
}

export class Assistant {
  static load(options: LoadOptions): Promise<Assistant>;
  ask(question: string, options?: AskOptions): Promise<Reply>;
  perplexity(text: string, tokens: number, handlers?: Handlers): Promise<Perplexity>;
  check(widths: number[], handlers?: Handlers): Promise<object>;
  forget(): Promise<object>;
  recalibrate(): Promise<{ costs: Record<string, number>; window: number }>;
  loaded: Loaded | null;
  request(method: string, params: object, handlers?: Handlers): Promise<any>;
  stop(): void;
  close(): void;
}
