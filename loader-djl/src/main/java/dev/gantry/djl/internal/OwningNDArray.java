package dev.gantry.djl.internal;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDScope;
import ai.djl.ndarray.types.DataType;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.engine.PtNDManager;
import dev.gantry.core.MisuseException;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/// The foot of [GantryNDArray]: whom it belongs to, and how an array of DJL's becomes one of ours.
///
/// An array of DJL's that is taken over lives on inside ours, detached from its manager, because on
/// the CPU it may hold the Java buffer that the native tensor points into. Both go when ours is
/// closed.
abstract class OwningNDArray extends PtNDArray {
  private final AtomicReference<@Nullable PtNDArray> source = new AtomicReference<>();

  OwningNDArray(PtNDManager manager, long handle) {
    super(manager, handle);
  }

  /// This array guarded: it, and all that is made of it by its methods, can have any dtype without
  /// ending the process. The array given must not be used any more. Arrays of strings and arrays
  /// that are guarded already come back as they are.
  public static PtNDArray guard(PtNDArray array) {
    if (array instanceof GantryNDArray) {
      return array;
    }
    if (array.getHandle() == 0) {
      // As DJL's convolution of arrays that are not images; whatever is done with it ends the
      // process.
      array.close();
      throw new MisuseException("DJL made no array of these operands");
    }
    if (array.getDataType() == DataType.STRING) {
      return array;
    }
    GantryNDArray guarded =
        GantryNDArray.over(array.getManager(), PyTorch.library().share(array.getHandle()));
    guarded.setName(array.getName());
    NDScope.unregister(array);
    array.detach();
    ((OwningNDArray) guarded).source.set(array);
    return guarded;
  }

  /// As [#guard(PtNDArray)].
  ///
  /// @throws MisuseException if the array is another engine's
  public static NDArray guard(NDArray array) {
    return guard(TorchArrays.torchArray(array));
  }

  /// As [#guard(NDArray)] for each array of the list, in place.
  public static NDList guard(NDList list) {
    list.replaceAll(OwningNDArray::guard);
    return list;
  }

  /// The array that holds the Java buffer which this one may lie in.
  PtNDArray bufferHolder() {
    PtNDArray taken = source.get();
    return taken == null ? this : taken;
  }

  @Override
  public void intern(NDArray replaced) {
    OwningNDArray incoming = (OwningNDArray) guard(replaced);
    PtNDArray kept = incoming.source.getAndSet(null);
    super.intern(incoming);
    PtNDArray old = source.getAndSet(kept);
    if (old != null) {
      old.close();
    }
  }

  /// Idempotent. The memory goes when the last view of it is closed too.
  @Override
  public void close() {
    super.close();
    PtNDArray taken = source.getAndSet(null);
    if (taken != null) {
      taken.close();
    }
  }
}
