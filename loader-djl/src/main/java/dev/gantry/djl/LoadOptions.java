// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.Device;
import ai.djl.ndarray.types.DataType;
import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.MisuseException;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.djl.internal.names.NamePattern;
import dev.gantry.djl.internal.weights.LoadSettings;
import dev.gantry.djl.internal.weights.TypePolicy;
import java.util.Optional;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// The options of a load of weights. Immutable.
public final class LoadOptions {
  private final LoadSettings settings;
  private final @Nullable TensorSelection selection;
  private final boolean verify;
  private final @Nullable Slice slice;

  /// The rule for which part of each tensor rank `rank` of `world` loads.
  record Slice(TensorSelection.Slices slices, int rank, int world) {}

  private LoadOptions(
      LoadSettings settings,
      @Nullable TensorSelection selection,
      boolean verify,
      @Nullable Slice slice) {
    this.settings = settings;
    this.selection = selection;
    this.verify = verify;
    this.slice = slice;
  }

  /// Returns options that load all tensors, in their stored types, onto the manager's device.
  public static LoadOptions defaults() {
    return builder().build();
  }

  /// Returns a builder that begins with [#defaults].
  public static Builder builder() {
    return new Builder();
  }

  LoadSettings settings() {
    return settings;
  }

  boolean verify() {
    return verify;
  }

  Optional<TensorSelection> selection() {
    return Optional.ofNullable(selection);
  }

  Optional<Slice> slice() {
    return Optional.ofNullable(slice);
  }

  /// Makes [LoadOptions]; nothing is required. Not thread-safe.
  public static final class Builder {
    private @Nullable Device device;
    private @Nullable TensorSelection selection;
    private TypePolicy types = TypePolicy.NONE;
    private boolean partial;
    private boolean skipMismatched;
    private boolean lazy;
    private boolean verify;
    private @Nullable Slice slice;
    private TransferOptions transfer = TransferOptions.defaults();
    private Consumer<TransferReport> report = _ -> {};

    private Builder() {}

    /// The device of the loaded tensors; default: the manager's device.
    public Builder optDevice(Device chosen) {
      device = MisuseException.requireGiven("optDevice", chosen);
      return this;
    }

    /// Chooses tensors, and rows of them; default: all tensors, whole. Only the chosen bytes are
    /// read. Not allowed for loads into parameters, where the parameters' names choose the
    /// tensors.
    public Builder optSelection(TensorSelection chosen) {
      selection = MisuseException.requireGiven("optSelection", chosen);
      return this;
    }

    /// Loads one rank's part of each tensor, for a process per GPU: arrays have the parts'
    /// shapes, and so must a block's parameters. Only the rank's bytes of long rows are read. A
    /// process with several GPUs loads by [Placement#sliced] instead, which reads each byte once.
    ///
    /// @param rank this process's number, from 0
    /// @param world how many ranks there are
    public Builder optSlices(TensorSelection.Slices slices, int rank, int world) {
      MisuseException.requireGiven("optSlices", slices);
      MisuseException.requireRange("world of optSlices", world, 1, Integer.MAX_VALUE);
      MisuseException.requireRange("rank of optSlices", rank, 0, world - 1);
      slice = new Slice(slices, rank, world);
      return this;
    }

    /// Casts floating-point tensors to this type, on the device, after they are read; other
    /// tensors keep their type. Without this option, arrays have the stored type, parameters
    /// without an array get FLOAT32, and parameters that have one always keep its type.
    ///
    /// FP8 tensors are multiplied by their scales, and so are I8 tensors that have scales: for a
    /// tensor `NAME`, the scales are the tensor `NAME_scale_inv` or `NAME_scale`, which does not
    /// become an array of its own then.
    ///
    /// @throws dev.gantry.core.MisuseException if `type` is none of FLOAT16, BFLOAT16, FLOAT32,
    ///     FLOAT64
    public Builder optCast(DataType type) {
      MisuseException.requireGiven("optCast", type);
      types = types.withOthers(type);
      return this;
    }

    /// Casts only the floating-point tensors whose names match to this type. The first pattern
    /// that matches decides, with precedence over [#optCast(DataType)].
    ///
    /// @param tensors a pattern as in [ParameterNames], such as `{layer*}.norm.weight`
    public Builder optCast(String tensors, DataType type) {
      MisuseException.requireGiven("tensors of optCast", tensors);
      MisuseException.requireGiven("type of optCast", type);
      types = types.with(new NamePattern(tensors), type);
      return this;
    }

    /// Gives parameters without an array the stored type instead of FLOAT32, unless a cast is
    /// asked for.
    public Builder optAsStored(boolean chosen) {
      types = types.withAsStored(chosen);
      return this;
    }

    /// Lets a load into parameters leave out parameters for which there is no tensor, and tensors
    /// that no rule of [ParameterNames#builder] uses. Both are errors by default. The
    /// [LoadReport] names them.
    public Builder optPartial(boolean chosen) {
      partial = chosen;
      return this;
    }

    /// Lets a load into parameters skip parameters whose tensors have another shape, such as those
    /// of a new head. They keep their values, and the [LoadReport] names them. They are errors by
    /// default.
    public Builder optSkipMismatched(boolean chosen) {
      skipMismatched = chosen;
      return this;
    }

    /// Maps the files instead of reading them: bytes come from disk when they are first touched.
    /// For the CPU only. The files must not shrink while a tensor is open. Writes to a tensor
    /// never reach the files.
    public Builder optLazy(boolean chosen) {
      lazy = chosen;
      return this;
    }

    /// Compares the CRC32C of each tensor while it is read, with the checksums of its checkpoint
    /// ([Checkpoints#openLatest]) or with `NAME.gantry-sums` beside each safetensors file, which
    /// `gantry index NAME` makes. The bytes pass through the CPU then, and cuFile is not used.
    /// Tensors of which only some rows are loaded are not compared. Default: nothing is compared.
    ///
    /// A tensor that differs is a [dev.gantry.core.MalformedFileException] of kind
    /// `checksum-mismatch`, after which nothing stays loaded. Arrays of [Weights#copyTo] have been
    /// overwritten then.
    public Builder optVerify(boolean chosen) {
      verify = chosen;
      return this;
    }

    /// The most bytes of one read; a multiple of 4096, at most 1 GiB. Default: 4 MiB from local
    /// files to GPUs, otherwise 8 MiB.
    public Builder optRequestBytes(long bytes) {
      transfer = transfer.withLimits(transfer.limits().withRequestBytes(bytes));
      return this;
    }

    /// The size of a slab, in bytes: the memory that a load takes as one piece. For tests, whose files are
    /// small.
    Builder slabBytes(long bytes) {
      PlanLimits limits = transfer.limits();
      transfer =
          transfer.withLimits(new PlanLimits(limits.requestBytes(), limits.gapBytes(), bytes));
      return this;
    }

    /// The number of concurrent readers; 0 to have it chosen for the transport and the machine.
    public Builder optThreads(int threads) {
      transfer = transfer.withThreads(threads);
      return this;
    }

    /// The only transport to use; by default, the load chooses a transport for each file.
    public Builder optTransport(Transport transport) {
      MisuseException.requireGiven("optTransport", transport);
      transfer = transfer.withTransport(transport);
      return this;
    }

    /// Whether reads go through the page cache; by default, only where it holds the bytes already.
    public Builder optCachePolicy(CachePolicy policy) {
      MisuseException.requireGiven("optCachePolicy", policy);
      transfer = transfer.withCachePolicy(policy);
      return this;
    }

    /// Sets a listener that is called, on the loading thread, with the number of bytes that are
    /// loaded.
    public Builder optProgress(ProgressListener listener) {
      MisuseException.requireGiven("optProgress", listener);
      transfer = transfer.withProgress(listener);
      return this;
    }

    /// Sets the cancellation that can end the load early.
    public Builder optCancellation(Cancellation cancellation) {
      MisuseException.requireGiven("optCancellation", cancellation);
      transfer = transfer.withCancellation(cancellation);
      return this;
    }

    /// Sets a consumer that receives a report after the load, such as the bytes by transport.
    public Builder optReport(Consumer<TransferReport> listener) {
      report = MisuseException.requireGiven("optReport", listener);
      return this;
    }

    /// The options as they are set now.
    ///
    /// @throws dev.gantry.core.MisuseException if both `optLazy` and `optTransport` are set
    public LoadOptions build() {
      if (lazy && transfer.transport() != null) {
        throw new MisuseException(
            "optTransport says how a load reads, and optLazy reads nothing: choose one of them");
      }
      return new LoadOptions(
          new LoadSettings(
              Optional.ofNullable(device),
              types,
              partial,
              skipMismatched,
              lazy,
              transfer,
              report,
              true),
          selection,
          verify,
          slice);
    }
  }
}
