// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import ai.djl.Device;
import ai.djl.ndarray.types.DataType;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// The options of a [TextEmbedder], [TextScorer] or [TextClassifier]. Immutable.
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

  /// @param partial whether tensors that no parameter needs, such as those of a head, are left
  ///     unread
  LoadOptions load(boolean partial) {
    return LoadOptions.builder().optCast(type).optPartial(partial).build();
  }

  /// On the CPU, the results of a small batch stay in the CPU's caches.
  int batchTokens() {
    int usual = device().isGpu() ? 16_384 : 1_024;
    return batchTokens == 0 ? usual : batchTokens;
  }

  /// Returns the most tokens of a text; 0 if the folder's setting applies.
  int maxLength() {
    return maxLength;
  }

  Optional<String> prompt() {
    return Optional.ofNullable(prompt);
  }

  /// Builds [TextOptions]. No option is required. Not thread-safe.
  public static final class Builder {
    private @Nullable Device device;
    private DataType type = DataType.FLOAT32;
    private int batchTokens;
    private int maxLength;
    private @Nullable String prompt;

    private Builder() {}

    /// Sets the device that computes. The default is DJL's: the first GPU, or the CPU if there is
    /// none.
    public Builder optDevice(Device chosen) {
      device = MisuseException.requireGiven("optDevice", chosen);
      return this;
    }

    /// Sets the type of the weights and of the arithmetic: FLOAT32 (the default), FLOAT16 or
    /// BFLOAT16. The latter two take half the memory. Steps after the model, such as pooling, are
    /// always computed in FLOAT32.
    public Builder optDtype(DataType chosen) {
      type = MisuseException.requireGiven("optDtype", chosen);
      return this;
    }

    /// Sets the most tokens in one forward pass, padding included. The default is 16,384 on a GPU
    /// and 1,024 on the CPU. Memory grows with this number. A single text may exceed it.
    public Builder optBatchTokens(int most) {
      MisuseException.requireRange("optBatchTokens", most, 1, MAX_TOKENS);
      batchTokens = most;
      return this;
    }

    /// Sets the most tokens of a text or pair, special tokens included. Longer texts are cut off.
    /// The default is the folder's setting.
    public Builder optMaxLength(int most) {
      MisuseException.requireRange("optMaxLength", most, 8, MAX_TOKENS);
      maxLength = most;
      return this;
    }

    /// Sets the prompt that is put before each text, by its name among the folder's prompts. The
    /// default is the folder's setting. An empty name stands for no prompt.
    public Builder optPrompt(String name) {
      prompt = MisuseException.requireGiven("optPrompt", name);
      return this;
    }

    /// Returns the options as they are set now.
    public TextOptions build() {
      return new TextOptions(this);
    }
  }
}
