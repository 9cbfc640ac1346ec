// Which language does the page speak? Context, switch, and `<html lang>`.
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from "react";
import { chooseLocale, type Locale, type MessageKey, translate, translateCode, type Values } from "./translate";
import { readStored, store } from "../app/stored";

export interface Words {
  readonly locale: Locale;
  readonly t: (key: MessageKey, values?: Values) => string;
  readonly code: (prefix: string, code: string, values: Values, fallback: string) => string;
  readonly setLocale: (locale: Locale) => void;
}

const WordsContext = createContext<Words | null>(null);
const STORED = "fairlead.locale";

export function LocaleProvider({ children }: { children: ReactNode }) {
  const [locale, setState] = useState<Locale>(() => chooseLocale(readStored(STORED), navigator.languages));
  useEffect(() => {
    document.documentElement.lang = locale;
  }, [locale]);
  const setLocale = useCallback((next: Locale) => {
    store(STORED, next);
    setState(next);
  }, []);
  const words = useMemo<Words>(
    () => ({
      locale,
      setLocale,
      t: (key, values) => translate(locale, key, values),
      code: (prefix, code, values, fallback) => translateCode(locale, prefix, code, values, fallback),
    }),
    [locale, setLocale],
  );
  return <WordsContext value={words}>{children}</WordsContext>;
}

export function useWords(): Words {
  const words = useContext(WordsContext);
  if (!words) throw new Error("no LocaleProvider above");
  return words;
}
