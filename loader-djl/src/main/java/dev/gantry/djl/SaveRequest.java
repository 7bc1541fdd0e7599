// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.Model;
import ai.djl.training.Trainer;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.datasets.Alternatives;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// The contents of a checkpoint that is to be saved. Model and trainer are read when it is saved,
/// and stay the caller's.
///
/// @param step how many steps the training has made
/// @param trainer empty where only parameters are saved
/// @param epoch how many epochs the training has completed
/// @param datasetState the dataset's position, as its own text
/// @param metrics by which checkpoints may be kept
/// @param metadata notes of your own
public record SaveRequest(
    long step,
    Model model,
    Optional<Trainer> trainer,
    long epoch,
    Optional<String> datasetState,
    Map<String, Double> metrics,
    Map<String, String> metadata) {
  /// @throws MisuseException if step or epoch is less than 0
  public SaveRequest {
    MisuseException.requireRange("setStep", step, 0, Long.MAX_VALUE);
    MisuseException.requireRange("optEpoch", epoch, 0, Long.MAX_VALUE);
    MisuseException.requireGiven("setModel", model);
    MisuseException.requireGiven("optTrainer", trainer);
    MisuseException.requireGiven("optDatasetState", datasetState);
    metrics =
        Collections.unmodifiableMap(
            new LinkedHashMap<>(MisuseException.requireGiven("metrics", metrics)));
    metadata =
        Collections.unmodifiableMap(
            new LinkedHashMap<>(MisuseException.requireGiven("metadata", metadata)));
  }

  /// A builder; step and model must be set.
  public static Builder builder() {
    return new Builder();
  }

  /// Makes [SaveRequest]s. Not thread-safe.
  public static final class Builder {
    private long step = -1;
    private @Nullable Model model;
    private @Nullable Trainer trainer;
    private long epoch;
    private @Nullable String datasetState;
    private final Map<String, Double> metrics = new LinkedHashMap<>();
    private final Map<String, String> metadata = new LinkedHashMap<>();
    private final Alternatives alternatives = new Alternatives();

    private Builder() {}

    /// How many steps the training has made; 0 or more.
    public Builder setStep(long chosen) {
      step = chosen;
      return this;
    }

    /// The model whose parameters are saved.
    public Builder setModel(Model chosen) {
      model = MisuseException.requireGiven("setModel", chosen);
      return this;
    }

    /// The trainer whose optimizer state and random numbers are saved too. Without a trainer, only
    /// parameters are saved.
    public Builder optTrainer(Trainer chosen) {
      trainer = MisuseException.requireGiven("optTrainer", chosen);
      return this;
    }

    /// How many epochs the training has completed; default: 0.
    public Builder optEpoch(long completed) {
      epoch = completed;
      return this;
    }

    /// The dataset's position, as its own text.
    public Builder optDatasetState(String state) {
      return datasetState("optDatasetState", state);
    }

    /// The position of this dataset now; [ResumableDataset#restore] resumes from there.
    public Builder optDataset(ResumableDataset dataset) {
      MisuseException.requireGiven("optDataset", dataset);
      return datasetState("optDataset", dataset.state());
    }

    private Builder datasetState(String option, String state) {
      alternatives.call(
          "the dataset's position", option, MisuseException.requireGiven(option, state));
      datasetState = state;
      return this;
    }

    /// A metric by which checkpoints may be kept, such as the validation loss.
    public Builder optMetric(String name, double value) {
      MisuseException.requireGiven("name of optMetric", name);
      if (name.isEmpty()) {
        throw new MisuseException("name of optMetric must not be empty");
      }
      metrics.put(name, value);
      return this;
    }

    /// A note of your own. A restore returns it, and the safetensors files hold it as metadata.
    public Builder optMetadata(String key, String value) {
      MisuseException.requireGiven("key of optMetadata", key);
      MisuseException.requireGiven("value of optMetadata", value);
      metadata.put(key, value);
      return this;
    }

    /// @throws MisuseException if the model is missing, or step or epoch is less than 0
    public SaveRequest build() {
      return new SaveRequest(
          step,
          MisuseException.requireGiven("setModel", model),
          Optional.ofNullable(trainer),
          epoch,
          Optional.ofNullable(datasetState),
          metrics,
          metadata);
    }
  }
}
