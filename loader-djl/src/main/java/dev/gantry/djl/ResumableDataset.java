// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import ai.djl.training.dataset.Dataset;
import ai.djl.translate.TranslateException;
import ai.djl.util.Progress;
import java.io.IOException;
import java.util.concurrent.ExecutorService;

/// A dataset that knows its position, so that a training can resume from there.
///
/// [CheckpointListener.Builder#optDataset] saves the place with each checkpoint. After a restart,
/// [#restore] is called before the training asks for data: it then gets exactly the batches that
/// were still to come in that epoch, and after them the epochs that follow.
public interface ResumableDataset extends Dataset, AutoCloseable {
  /// The datasets of Gantry have readers of their own, so the executor is not used.
  @Override
  default Iterable<Batch> getData(NDManager manager, ExecutorService executor)
      throws IOException, TranslateException {
    return getData(manager);
  }

  /// Does nothing: a dataset is ready when it is built.
  @Override
  default void prepare(Progress progress) throws IOException, TranslateException {}

  /// The position after the last batch that was taken, as one line of text. Any thread may call it.
  ///
  /// After the last batch of an epoch, the position is the beginning of the next epoch. A stream of TFRecord,
  /// however, knows that it has ended only when it is asked for another batch, as `EasyTrain.fit` asks; until
  /// then the position is the end of this epoch.
  String state();

  /// Whether the batch that was taken last was the epoch's last, and [#state] is already where the
  /// next one begins. A training that stops there has completed the epoch.
  default boolean isEpochOver() {
    return false;
  }

  /// Goes on from `state`, with the next call of `getData`.
  ///
  /// @throws dev.gantry.core.MisuseException if `state` is not of a dataset with the same files, batch size,
  ///     order, world and, for streams, rank; the prefetch depth, device and transforms may differ
  void restore(String state);

  /// Ends the iterations under way and frees their memory. Batches that are out stay valid until
  /// they are closed.
  @Override
  void close();
}
