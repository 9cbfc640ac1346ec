// What this browser keeps between visits. Where it keeps nothing (storage off or full), a choice lasts as long as the page.
const unkept = new Map<string, string>();

export function readStored(key: string): string | null {
  try {
    return unkept.get(key) ?? localStorage.getItem(key);
  } catch {
    return unkept.get(key) ?? null;
  }
}

export function store(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
    unkept.delete(key);
  } catch {
    unkept.set(key, value);
  }
}
