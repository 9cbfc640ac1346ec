// The sign of Fairlead.
export function Mark() {
  return (
    <svg viewBox="0 0 16 16" aria-hidden="true">
      <rect x="1" y="1" width="6" height="6" rx="1" fill="var(--teal)" />
      <rect x="9" y="1" width="6" height="6" rx="1" fill="var(--scale-teal-1)" />
      <rect x="1" y="9" width="6" height="6" rx="1" fill="var(--scale-teal-1)" />
      <rect x="9.75" y="9.75" width="4.5" height="4.5" rx=".5" fill="none" stroke="var(--teal)" strokeWidth="1.5" />
    </svg>
  );
}
