// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.Device;
import ai.djl.ndarray.types.DataType;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// How a [TextEmbedder], [TextScorer] or [TextClassifier] computes. Immutable.
public final class TextOptions {
  private static final int MAX_TOKENS = 1 << 24;

  private final @Nullable Device device;
  private final DataType type;
  private final int batchTokens;
  private final int maxLength;
  private final @Nullable String prompt;

  private TextOptions(Builder builder) {
    device = builder.device;
    type = builder.type;
    batchTokens = builder.batchTokens;
    maxLength = builder.maxLength;
    prompt = builder.prompt;
  }

  /// Returns options with the defaults that the builder's methods name.
  public static TextOptions defaults() {
    return builder().build();
  }

  /// Returns a builder that begins with [#defaults].
  public static Builder builder() {
    return new Builder();
  }

  Device device() {
    return device == null ? TorchArrays.defaultDevice() : device;
  }

  /// @param partial whether tensors that no parameter needs stay in the files, such as those of a head
  LoadOptions load(boolean partial) {
    return LoadOptions.builder().optCast(type).optPartial(partial).build();
  }

  /// On the CPU, what a small batch computes stays in its caches.
  int batchTokens() {
    int usual = device().isGpu() ? 16_384 : 1_024;
    return batchTokens == 0 ? usual : batchTokens;
  }

  /// The most tokens of a text; 0 where the folder decides.
  int maxLength() {
    return maxLength;
  }

  Optional<String> prompt() {
    return Optional.ofNullable(prompt);
  }

  /// Makes [TextOptions]; nothing is required. For one thread.
  public static final class Builder {
    private @Nullable Device device;
    private DataType type = DataType.FLOAT32;
    private int batchTokens;
    private int maxLength;
    private @Nullable String prompt;

    private Builder() {}

    /// The device that computes; default: DJL's, which is the first GPU, or the CPU.
    public Builder optDevice(Device chosen) {
      device = MisuseException.requireGiven("optDevice", chosen);
      return this;
    }

    /// The type of the weights and of the arithmetic: FLOAT32 unless you say otherwise, or
    /// FLOAT16 or BFLOAT16, which take half the memory. Steps behind the model, such as pooling,
    /// are computed in FLOAT32.
    public Builder optDtype(DataType chosen) {
      type = MisuseException.requireGiven("optDtype", chosen);
      return this;
    }

    /// The most tokens that go through the model at once, with padding; 16,384 on a GPU and 1,024 on the CPU unless you say
    /// otherwise. Memory grows with it. A single text may have more.
    public Builder optBatchTokens(int most) {
      MisuseException.requireRange("optBatchTokens", most, 1, MAX_TOKENS);
      batchTokens = most;
      return this;
    }

    /// The most tokens of a text or pair, special ones included; what is longer is cut off. Default: what the folder says.
    public Builder optMaxLength(int most) {
      MisuseException.requireRange("optMaxLength", most, 8, MAX_TOKENS);
      maxLength = most;
      return this;
    }

    /// The name of the prompt that is put before each text, one of the folder's. Default: what the folder says. An empty name
    /// stands for no prompt.
    public Builder optPrompt(String name) {
      prompt = MisuseException.requireGiven("optPrompt", name);
      return this;
    }

    /// The options as they are set now.
    public TextOptions build() {
      return new TextOptions(this);
    }
  }
}
