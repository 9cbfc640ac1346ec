// Every colour of the console, light and dark, in one place. CSS reads them as variables, the canvases and Ant Design as values.
// Meaning: blue = allocated, teal = utilization, amber = borrowed or waiting, red = broken, grey hatch = unknown.

export type Shade = "light" | "dark";

export interface Tokens {
  readonly page: string;
  readonly surface: string;
  readonly raised: string;
  readonly hover: string;
  readonly line: string;
  readonly lineStrong: string;
  readonly text: string;
  readonly text2: string;
  readonly text3: string;
  readonly track: string;
  readonly blue: string;
  readonly blueSoft: string;
  readonly teal: string;
  readonly amber: string;
  readonly amberSoft: string;
  readonly red: string;
  readonly redSoft: string;
  readonly green: string;
  readonly focus: string;
  readonly free: string;
  readonly idleFill: string;
  readonly idleLine: string;
  readonly unknownLine: string;
  /** Utilization and memory, 1 % … 100 %. */
  readonly scaleTeal: readonly string[];
  /** Temperature, cool … hot. */
  readonly scaleHeat: readonly string[];
  /** Idle time, just now … an hour and more. */
  readonly scaleAmber: readonly string[];
  /** Entities (teams, series): eight that stay apart in deuteranopia, then a grey for the rest. */
  readonly series: readonly string[];
  readonly rest: string;
}

const light: Tokens = {
  page: "#f5f6f7",
  surface: "#ffffff",
  raised: "#ffffff",
  hover: "#f0f2f4",
  line: "#e3e6e9",
  lineStrong: "#c5cbd1",
  text: "#1b2127",
  text2: "#55606b",
  text3: "#616c77",
  track: "#e8ebee",
  blue: "#2563c9",
  blueSoft: "#b9cff2",
  teal: "#0c7a70",
  amber: "#9a6200",
  amberSoft: "#f3c871",
  red: "#c22f2f",
  redSoft: "#fbe9e8",
  green: "#2c7a3f",
  focus: "#2563c9",
  free: "#b4bcc4",
  idleFill: "#dbe7fa",
  idleLine: "#6f9be0",
  unknownLine: "#a2abb4",
  scaleTeal: ["#c9e7e2", "#7fc6bd", "#2f9a8f", "#0b6e66", "#04423e"],
  scaleHeat: ["#e9e3dc", "#f0c98d", "#e08a45", "#b94a2c", "#7a1f1f"],
  scaleAmber: ["#f5ead2", "#f3c871", "#dd9a2b", "#a86a0c", "#6d4200"],
  series: ["#2563c9", "#d9730d", "#0c8a7e", "#a3388f", "#7a8a12", "#5b4bc4", "#b5474f", "#3b8fb5"],
  rest: "#8a949e",
};

const dark: Tokens = {
  page: "#0e1114",
  surface: "#15191d",
  raised: "#1c2126",
  hover: "#1d2328",
  line: "#262c32",
  lineStrong: "#3b444d",
  text: "#e3e7ea",
  text2: "#a2acb6",
  text3: "#8b96a1",
  track: "#272e35",
  blue: "#6fa3f2",
  blueSoft: "#2c4a7d",
  teal: "#45b8aa",
  amber: "#e0a63f",
  amberSoft: "#8a6117",
  red: "#f0716b",
  redSoft: "#3a1c1c",
  green: "#62b878",
  focus: "#6fa3f2",
  free: "#4a545e",
  idleFill: "#1d3050",
  idleLine: "#4a76bb",
  unknownLine: "#5d6873",
  scaleTeal: ["#173f3c", "#1b655f", "#279387", "#4dc2b3", "#a8efe4"],
  scaleHeat: ["#2b2a2a", "#5c4423", "#a1622b", "#dd7f45", "#ffc08a"],
  scaleAmber: ["#2f281a", "#5c4317", "#94691a", "#cf9530", "#ffd481"],
  series: ["#6fa3f2", "#f0954a", "#3fbfae", "#d87bc6", "#b3c04a", "#9d8ff0", "#e8848a", "#6cc0e0"],
  rest: "#7d8893",
};

export const tokens: Readonly<Record<Shade, Tokens>> = { light, dark };

/** `scaleTeal` → `--scale-teal-0`…; `blueSoft` → `--blue-soft`. */
export function cssVariables(t: Tokens): [string, string][] {
  return Object.entries(t).flatMap(([key, value]) => {
    const name = `--${key.replace(/[A-Z0-9]/g, (c) => (/\d/.test(c) ? `-${c}` : `-${c.toLowerCase()}`))}`;
    return typeof value === "string" ? [[name, value] as [string, string]] : (value as string[]).map((v, i): [string, string] => [`${name}-${i}`, v]);
  });
}
