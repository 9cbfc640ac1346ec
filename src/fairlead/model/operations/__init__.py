"""Operations: plans of several writes, their steps, and the components that they bring."""
