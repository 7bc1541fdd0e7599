package dev.gantry.core.internal.ring;

import dev.gantry.core.Location;
import dev.gantry.core.internal.store.SourceFile;
import java.util.Optional;

/// Says what the batches are, one after the other.
///
/// A ring asks one thread at a time, and before it fills the batch: as many batches ahead of the
/// consumer as it has slots. What this throws is thrown at the consumer in place of that batch, and
/// ends the ring.
public interface BatchPlanSource<T> extends AutoCloseable {
  /// The next batch, or empty at the end.
  Optional<BatchPlan<T>> next();

  /// Called when a file of a filling is opened, or opened again, before anything is read from it;
  /// several threads may call it at once. What it throws is thrown at the consumer in place of the
  /// batch that wanted the file, and ends the ring.
  ///
  /// @param file as the filling names it
  /// @param identity of what was opened
  default void opened(Location file, SourceFile.Identity identity) {}

  /// Called once, when nothing is asked or made any more; also where the ring could not be opened.
  /// It cannot close the ring or its session, which wait for it:
  /// [dev.gantry.core.MisuseException].
  @Override
  default void close() {}
}
