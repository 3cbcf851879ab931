// What a reply may be, as the host writes it once. pyweb/plan/control.py lays it out.
struct Request {
  token_limit: u32,
  context_limit: u32,
  prompt_length: u32,
  stops: u32,
  stop: array<u32, 12>,
}
