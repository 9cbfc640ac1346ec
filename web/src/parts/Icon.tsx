// The few drawings the console needs, 16 px, one stroke. A noun does not need an icon; a collapsed menu does.

const PATHS = {
  overview: "M2.5 2.5h4.5v4.5h-4.5zM9 2.5h4.5v4.5H9zM2.5 9h4.5v4.5h-4.5zM9 9h4.5v4.5H9z",
  mine: "M8 2.5a2.7 2.7 0 1 0 0 5.4 2.7 2.7 0 0 0 0-5.4zM2.8 13.5c0-2.7 2.2-4.3 5.2-4.3s5.2 1.6 5.2 4.3",
  nodes: "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01",
  holders: "M6 2.8a2.4 2.4 0 1 0 0 4.8 2.4 2.4 0 0 0 0-4.8zM2 13.2c0-2.4 1.8-3.8 4-3.8s4 1.4 4 3.8M10.5 3.2a2.2 2.2 0 0 1 0 4.2M11.5 9.6c1.6.5 2.5 1.8 2.5 3.6",
  devices: "M4.5 4.5h7v7h-7zM6.5 2.5v2M9.5 2.5v2M6.5 11.5v2M9.5 11.5v2M2.5 6.5h2M2.5 9.5h2M11.5 6.5h2M11.5 9.5h2",
  jobs: "M2.5 4.5h6M2.5 8h11M2.5 11.5h8",
  submit: "M8 10.5V2.5M4.8 5.5L8 2.5l3.2 3M2.5 9.5v4h11v-4",
  serving: "M2.5 8h4M6.5 8l3.5-4M6.5 8l3.5 4M6.5 8h4M10.5 4h3M10.5 8h3M10.5 12h3",
  datasets: "M3 4.2c0-1 2.2-1.7 5-1.7s5 .7 5 1.7-2.2 1.7-5 1.7-5-.7-5-1.7zM3 4.2v3.9c0 1 2.2 1.7 5 1.7s5-.7 5-1.7V4.2M3 8.1v3.7c0 1 2.2 1.7 5 1.7s5-.7 5-1.7V8.1",
  components: "M2.5 5l5.5-2.5L13.5 5 8 7.5zM2.5 8L8 10.5 13.5 8M2.5 11L8 13.5l5.5-2.5",
  operations: "M3 3.5h2v2H3zM7.5 4.5h6M3 7.2h2v2H3zM7.5 8.2h6M3 10.9h2v2H3zM7.5 11.9h4",
  quota: "M8 2.5v3M8 5.5H3.5v3M8 5.5h4.5v3M2 8.5h3v4H2zM11 8.5h3v4h-3zM6.5 8.5h3v4h-3zM8 5.5v3",
  usage: "M2.5 13.5h11M4 13.5V9.5M7 13.5V6M10 13.5v-5M13 13.5V3",
  idle: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM6.5 6v4M9.5 6v4",
  health: "M2 8h3l1.5-4 3 8L11 8h3",
  fold: "M9.5 4.5L6 8l3.5 3.5",
  unfold: "M6.5 4.5L10 8l-3.5 3.5",
  refresh: "M13 8a5 5 0 1 1-1.5-3.5M13 2.5V5h-2.5",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  close: "M4 4l8 8M12 4l-8 8",
  columns: "M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10",
  rows: "M2.5 4h11M2.5 6.7h11M2.5 9.3h11M2.5 12h11",
  download: "M8 2.5v7.5M5 7.5L8 10.5l3-3M3 13h10",
  open: "M6 3.5H3v9.5h9.5V10M9 3h4v4M13 3L7.5 8.5",
  search: "M7 3a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM10 10l3.2 3.2",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3.5v9l7.5-4.5z",
  step: "M4 3.5v9l6-4.5zM12 3.5v9",
  command: "M3 4.5L6.5 8 3 11.5M8 11.5h5",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  check: "M3 8.5l3.2 3.2L13 4.8",
  table: "M2.5 3.5h11v9h-11zM2.5 6.5h11M2.5 9.5h11M6.5 6.5v6",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} strokeWidth={name === "more" ? 2 : undefined} />
    </svg>
  );
}
