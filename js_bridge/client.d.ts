export interface Progress {
  stage: string;
  done: number;
  total: number;
  note: string;
  /** seconds that the rest of a file will take */
  left?: number | null;
}

export interface ModelSource {
  name: string;
  url?: string;
  file?: File;
  size?: number;
  parts?: string[];
  /** URL of a tokenizer.json in place of the file's own vocabulary */
  tokenizer?: string;
  keep?: boolean;
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
  model: string | File | ModelSource;
  context?: number;
  kv?: 'f16' | 'f32';
  memory?: 'off' | 'conversation' | 'origin';
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
  runtime?: string;
  worker?: string;
}

export interface Material {
  /** of this document where left out, none where null */
  page?: PageSnapshot | null;
  text?: string;
  system?: string;
}

export interface QuestionOptions extends Handlers {
  selection?: string;
  maxTokens?: number;
  mode?: string;
  window?: number;
  budget?: number;
  stop?: string | string[];
  reuse?: boolean;
  sampling?: SamplingOptions;
  onStep?: (step: Step) => void;
}

export interface AskOptions extends Material, QuestionOptions {}

export interface Token {
  id: number;
  text: string;
}

export interface Step {
  /** null before the first step, whose tree is reported then */
  record: [tokens: number, matchLength: number, width: number] | null;
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
  finish_reason: 'stop' | 'length' | 'cancelled';
  reused: number;
  dropped: number;
  material: string;
  more: string;
  notes: string[];
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
  adapter: string;
  context: number;
  gpu_bytes: { weights: number; kv_cache: number };
  fetched: number;
  not_kept: string;
  notes: string[];
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
  chat(options?: Material): Chat;
  inspect(model: string | File | ModelSource, context?: number): Promise<Description>;
  perplexity(text: string, tokens: number, handlers?: Handlers): Promise<Perplexity>;
  check(widths: number[], handlers?: Handlers): Promise<object>;
  forget(): Promise<object>;
  recalibrate(): Promise<{ costs: Record<string, number>; window: number }>;
  loaded: Loaded | null;
  request(method: string, params: object, handlers?: Handlers): Promise<any>;
  stop(): void;
  close(): void;
}

export class Chat {
  ask(question: string, options?: QuestionOptions): Promise<Reply>;
  close(): Promise<void>;
}

export interface Description {
  name: string | null;
  architecture: string | null;
  licence: string | null;
  parameters: number;
  weight_bytes: number;
  quantization: Record<string, Record<string, { count: number; bytes: number }>>;
  tensors: number;
  layers: number | null;
  heads: number | null;
  kv_heads: number | null;
  head_size: number | null;
  width: number | null;
  tokenizer: string | null;
  splitting: string | null;
  vocabulary: number | null;
  template: boolean;
  context: number | null;
  memory: { context: number; weights: number; kv_cache: number; total: number } | null;
  runs: boolean;
  missing: string[];
}
