package dev.gantry.djl;

import ai.djl.training.dataset.Dataset;

/// A dataset that knows where it stands, so that a training can go on from there.
///
/// [CheckpointListener.Builder#optDataset] saves the place with each checkpoint. After a restart,
/// [#restore] is called before the training asks for data: it then gets exactly the batches that
/// were still to come in that epoch, and after them the epochs that follow.
public interface ResumableDataset extends Dataset, AutoCloseable {
  /// Where the dataset stands: behind the last batch that was taken from it. One line of text. May
  /// be called by any thread.
  ///
  /// Behind the last batch of an epoch that is the next one's beginning. But a stream of TFRecord
  /// knows its end only when it was asked for more: until then, as `EasyTrain.fit` does, the state
  /// says that nothing is left of this epoch.
  String state();

  /// Whether the batch that was taken last was the epoch's last, and [#state] is already where the
  /// next one begins. A training that stops there has completed the epoch.
  default boolean isEpochOver() {
    return false;
  }

  /// Goes on from `state`, with the next call of `getData`.
  ///
  /// @throws dev.gantry.core.MisuseException if that is no state of this dataset, with these files,
  ///     this batch size, order and world, and of streams this rank; the prefetch depth, device and
  ///     transforms may be others
  void restore(String state);

  /// Ends the iterations under way and frees their memory. Batches that are out stay valid until
  /// they are closed.
  @Override
  void close();
}
