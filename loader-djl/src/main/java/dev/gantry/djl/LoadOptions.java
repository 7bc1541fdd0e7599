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
import java.util.Optional;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// How weights are loaded. Immutable.
public final class LoadOptions {
  private final @Nullable Device device;
  private final @Nullable TensorSelection selection;
  private final @Nullable DataType cast;
  private final boolean partial;
  private final boolean lazy;
  private final TransferOptions transfer;
  private final Consumer<TransferReport> report;

  private LoadOptions(Builder builder) {
    this.device = builder.device;
    this.selection = builder.selection;
    this.cast = builder.cast;
    this.partial = builder.partial;
    this.lazy = builder.lazy;
    this.transfer = builder.transfer;
    this.report = builder.report;
  }

  /// Everything, onto the manager's device, as it is in the file.
  public static LoadOptions defaults() {
    return builder().build();
  }

  public static Builder builder() {
    return new Builder();
  }

  Optional<Device> device() {
    return Optional.ofNullable(device);
  }

  Optional<TensorSelection> selection() {
    return Optional.ofNullable(selection);
  }

  Optional<DataType> cast() {
    return Optional.ofNullable(cast);
  }

  boolean partial() {
    return partial;
  }

  boolean lazy() {
    return lazy;
  }

  TransferOptions transfer() {
    return transfer;
  }

  Consumer<TransferReport> report() {
    return report;
  }

  /// Makes [LoadOptions]; nothing is required. For one thread.
  public static final class Builder {
    private @Nullable Device device;
    private @Nullable TensorSelection selection;
    private @Nullable DataType cast;
    private boolean partial;
    private boolean lazy;
    private TransferOptions transfer = TransferOptions.defaults();
    private Consumer<TransferReport> report = _ -> {};

    private Builder() {}

    /// Where the tensors go; else to the manager's device.
    public Builder optDevice(Device chosen) {
      MisuseException.requireGiven("optDevice", chosen);
      device = chosen;
      return this;
    }

    /// Which tensors, and which rows of them; else all. Only their bytes are read. Not for loads
    /// into parameters, whose names choose.
    public Builder optSelection(TensorSelection chosen) {
      MisuseException.requireGiven("optSelection", chosen);
      selection = chosen;
      return this;
    }

    /// Turns floating-point tensors (F16, BF16, F32, F64) into this type, on the device, after they
    /// are read; the others stay as they are. The parameters of a block that is not initialised get
    /// this type, else FLOAT32, and those that have an array keep theirs. A selection with FP8 or smaller floating-point
    /// tensors is refused then, since DJL cannot hold what they would be cast from.
    ///
    /// @throws dev.gantry.core.MisuseException if `type` is none of FLOAT16, BFLOAT16, FLOAT32,
    ///     FLOAT64
    public Builder optCast(DataType type) {
      MisuseException.requireGiven("optCast", type);
      cast = Casts.requireTarget(type);
      return this;
    }

    /// Lets a load into parameters leave out those for which there is no tensor; else that is an
    /// error. The [LoadReport] names them.
    public Builder optPartial(boolean chosen) {
      partial = chosen;
      return this;
    }

    /// Maps the files instead of reading them: bytes come from disk when they are first touched.
    /// For the CPU only. The files must not shrink while a tensor lives, and what is written to a
    /// tensor never reaches them.
    public Builder optLazy(boolean chosen) {
      lazy = chosen;
      return this;
    }

    /// The most that one read asks for, in bytes; a multiple of 4096, at most 1 GiB.
    public Builder optRequestBytes(long bytes) {
      transfer = transfer.withLimits(transfer.limits().withRequestBytes(bytes));
      return this;
    }

    /// For tests, whose files are small: how much memory a load takes as one piece.
    Builder slabBytes(long bytes) {
      PlanLimits limits = transfer.limits();
      transfer =
          transfer.withLimits(new PlanLimits(limits.requestBytes(), limits.gapBytes(), bytes));
      return this;
    }

    /// Readers that work at once; 0 for what suits the path and the machine.
    public Builder optThreads(int threads) {
      transfer = transfer.withThreads(threads);
      return this;
    }

    /// The only path to take; else the path is chosen by evidence, per file.
    public Builder optTransport(Transport path) {
      MisuseException.requireGiven("optTransport", path);
      transfer = transfer.withTransport(path);
      return this;
    }

    /// Whether reads go through the page cache; else by looking what lies there.
    public Builder optCachePolicy(CachePolicy policy) {
      MisuseException.requireGiven("optCachePolicy", policy);
      transfer = transfer.withCachePolicy(policy);
      return this;
    }

    /// Hears how far the load is, on the loading thread.
    public Builder optProgress(ProgressListener listener) {
      MisuseException.requireGiven("optProgress", listener);
      transfer = transfer.withProgress(listener);
      return this;
    }

    /// Ends the load early.
    public Builder optCancellation(Cancellation cancellation) {
      MisuseException.requireGiven("optCancellation", cancellation);
      transfer = transfer.withCancellation(cancellation);
      return this;
    }

    /// Is told afterwards by which paths the bytes came.
    public Builder optReport(Consumer<TransferReport> listener) {
      MisuseException.requireGiven("optReport", listener);
      report = listener;
      return this;
    }

    public LoadOptions build() {
      return new LoadOptions(this);
    }
  }
}
