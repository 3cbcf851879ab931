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

/** Random weights of a real model's shape, made in the page: for measurements without a download. */
export interface RandomModel {
  shape:
    | 'qwen2.5-0.5b'
    | 'qwen2.5-1.5b'
    | 'llama-3.2-1b'
    | 'qwen2.5-3b'
    | 'llama-3.2-3b'
    | 'qwen2.5-7b'
    | 'llama-3.1-8b'
    | 'tiny';
  /** URL of a tokenizer.json in place of one token a byte */
  tokenizer?: string;
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
  model: string | File | ModelSource | RandomModel;
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
  /** milliseconds that a frame of the page may take: late frames make the model yield the GPU */
  frameBudget?: number;
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
  times: { load: number; prefill: number; first_token: number; decode: number; paused: number };
  /** the smallest part of the GPU that a frame budget left to the model */
  least_share: number;
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

export type BenchPart = 'widths' | 'modes' | 'prefill' | 'roles' | 'host';

export interface BenchOptions {
  settings?: {
    runs?: number;
    tokens?: number;
    widths?: number[];
    modes?: string[];
    lengths?: number[];
    role_widths?: number[];
    host_modes?: string[];
    position?: number;
    steps?: number;
    batch?: number;
  };
  prompts?: { id?: string; instruction: string; page?: string }[];
  /** a result to which the parts are added */
  measured?: object;
  /** every reply has its full length, as random weights need it */
  forced?: boolean;
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
}

/** pyweb/bench/report.py describes the sections. */
export interface BenchResult {
  format: number;
  tables: { title: string; columns: string[]; rows: string[][]; note: string }[];
  [section: string]: unknown;
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
  inspect(model: string | File | ModelSource | RandomModel, context?: number): Promise<Description>;
  perplexity(text: string, tokens: number, handlers?: Handlers): Promise<Perplexity>;
  check(widths: number[], handlers?: Handlers): Promise<object>;
  bench(parts: BenchPart[], options?: BenchOptions): Promise<BenchResult>;
  forget(): Promise<object>;
  prepare(mode?: string): Promise<{ calibration: { costs: Record<string, number>; window: number } | null }>;
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
