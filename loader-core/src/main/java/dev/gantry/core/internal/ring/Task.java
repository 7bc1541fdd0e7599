package dev.gantry.core.internal.ring;

/// What a reader does next.
sealed interface Task<T> {
  /// Asks the source for the batch of this number.
  record Ask<T>(long number, Slot slot) implements Task<T> {}

  record Do<T>(BatchWork<T> work, Item item) implements Task<T> {}
}
