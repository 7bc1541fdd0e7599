package dev.gantry.djl;

import dev.gantry.formats.checkpoint.StoredCheckpoint;
import java.util.Map;
import java.util.Optional;

/// Where a training stood when the checkpoint was saved that it now goes on from.
///
/// @param checkpoint that was restored
/// @param step how many steps it had made
/// @param epoch how many epochs it had completed
/// @param datasetState where the dataset stood, in its own words
/// @param metrics as they were saved
/// @param metadata the user's own notes
public record RestoredTraining(
    StoredCheckpoint checkpoint,
    long step,
    long epoch,
    Optional<String> datasetState,
    Map<String, Double> metrics,
    Map<String, String> metadata) {}
