// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.Model;
import ai.djl.training.Trainer;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.names.NamePattern;
import dev.gantry.djl.internal.training.RestoreTarget;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/// A request to [CheckpointSaver#restore(RestoreRequest)]: it selects a whole training, or a part
/// of it. Immutable.
public final class RestoreRequest {
  private final RestoreTarget target;
  private final OptionalLong step;

  private RestoreRequest(RestoreTarget target, OptionalLong step) {
    this.target = target;
    this.step = step;
  }

  /// A builder; the model must be set.
  public static Builder builder() {
    return new Builder();
  }

  RestoreTarget target() {
    return target;
  }

  OptionalLong step() {
    return step;
  }

  /// Makes [RestoreRequest]s. Not thread-safe.
  public static final class Builder {
    private @Nullable Model model;
    private @Nullable Trainer trainer;
    private OptionalLong step = OptionalLong.empty();
    private boolean partial;
    private boolean skipMismatched;
    private boolean optimizer = true;
    private final List<NamePattern> parameters = new ArrayList<>();

    private Builder() {}

    /// The model whose parameters are restored.
    public Builder setModel(Model chosen) {
      model = MisuseException.requireGiven("setModel", chosen);
      return this;
    }

    /// The initialised trainer whose optimizer state and random numbers are restored, too. Without a trainer,
    /// only parameters are restored.
    public Builder optTrainer(Trainer chosen) {
      trainer = MisuseException.requireGiven("optTrainer", chosen);
      return this;
    }

    /// The step whose checkpoint is restored; default: the checkpoint that was saved last.
    public Builder optStep(long chosen) {
      MisuseException.requireRange("optStep", chosen, 0, Long.MAX_VALUE);
      step = OptionalLong.of(chosen);
      return this;
    }

    /// Skips parameters that the checkpoint lacks, and saved parameters that the model lacks.
    /// Skipped parameters keep their values. [RestoredTraining] names both. Default: both are
    /// errors.
    public Builder optPartial(boolean chosen) {
      partial = chosen;
      return this;
    }

    /// Skips parameters that have another shape than the saved ones, such as those of a new head.
    /// They keep their values, and [RestoredTraining] names them. Default: they are errors.
    public Builder optSkipMismatched(boolean chosen) {
      skipMismatched = chosen;
      return this;
    }

    /// Restores only the parameters whose paths match one of these patterns, and the optimizer's state of
    /// these; default: all parameters. May be called several times.
    ///
    /// @param patterns as in [ParameterNames], such as `01SequentialBlock_{rest*}`
    /// @throws MisuseException if a capture is misspelt
    public Builder optParameters(String... patterns) {
      for (String pattern : MisuseException.requireGiven("optParameters", patterns)) {
        parameters.add(
            new NamePattern(MisuseException.requireGiven("pattern of optParameters", pattern)));
      }
      return this;
    }

    /// Whether the optimizer's state is restored with a trainer; default: true. If false, the
    /// optimizer keeps its state, and may be of another kind than the saved optimizer.
    public Builder optOptimizer(boolean chosen) {
      optimizer = chosen;
      return this;
    }

    /// @throws MisuseException if the model is missing
    public RestoreRequest build() {
      return new RestoreRequest(
          new RestoreTarget(
              MisuseException.requireGiven("setModel", model),
              trainer,
              partial,
              skipMismatched,
              parameters,
              optimizer),
          step);
    }
  }
}
