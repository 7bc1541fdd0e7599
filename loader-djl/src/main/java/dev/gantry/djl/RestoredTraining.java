// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.djl.internal.training.TrainingRestore;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.formats.internal.checkpoint.Manifest;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;

/// The position of a training that was restored.
///
/// @param checkpoint the restored one
/// @param step how many steps it had made
/// @param epoch how many epochs it had completed
/// @param datasetState the dataset's position, as its own text
/// @param metrics as they were saved
/// @param metadata your own notes
/// @param skipped the parameters that were left as they are, which only a [RestoreRequest] asks for, with the
///     reason of each, in the block's order
/// @param unused the saved parameters that the model lacks, which only `optPartial` allows
public record RestoredTraining(
    StoredCheckpoint checkpoint,
    long step,
    long epoch,
    Optional<String> datasetState,
    Map<String, Double> metrics,
    Map<String, String> metadata,
    SequencedMap<String, String> skipped,
    List<String> unused) {
  static RestoredTraining of(TrainingRestore.Restored restored) {
    Manifest manifest = restored.checkpoint().manifest();
    return new RestoredTraining(
        restored.checkpoint(),
        manifest.step(),
        restored.epoch(),
        restored.datasetState(),
        manifest.metrics(),
        manifest.metadata(),
        restored.skipped(),
        restored.unused());
  }
}
