// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.nn.SymbolBlock;
import ai.djl.training.ParameterStore;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.djl.internal.live.GuardedParameters;
import dev.gantry.djl.internal.live.OffloadedParameters;
import dev.gantry.djl.internal.live.Steps;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.djl.internal.weights.BlockShapes;
import dev.gantry.djl.internal.weights.ParameterLoad;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Supplier;
import java.util.stream.BaseStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The weights of a block that predictors use: they can be replaced, or leave the device for a time,
/// while the server runs.
///
/// Give [#block] to the model. Its `forward`, and whatever else takes a [ParameterStore], waits while the
/// weights are being replaced, and is refused while they are away; a replacement waits for calls of `forward`
/// that have begun. A prediction that goes on after its call, such as a stream of tokens, waits step by step:
/// each step uses the weights of one refresh, and the next step may use those of another.
///
/// From [#of] to [#close], predictions that use the given block itself are refused: those of predictors that
/// were made before `setBlock(live.block())`, and those that a block computes on threads of its own. [#of]
/// replaces the block's arrays that DJL made, and an [#offload] closes all of its arrays: whoever has kept
/// one finds it closed, also after [#close], and such a predictor must be made anew. A TorchScript module
/// holds its weights itself, so a prediction by the module itself is not noticed.
///
/// ```java
/// LiveWeights live = LiveWeights.of(block);
/// model.setBlock(live.block());
/// …
/// live.refresh(newWeights, names, LoadOptions.defaults());
/// ```
///
/// Thread-safe.
public final class LiveWeights implements AutoCloseable {
  /// The parameters that an open one has: if two had the same ones, predictions that wait for the first one's refresh
  /// would not wait for the second one's. Weak: whoever forgets a block and its live weights need not close these.
  private static final Set<Parameter> HELD = Collections.newSetFromMap(new WeakHashMap<>());

  private final Block target;
  private final Block block;
  private final List<Parameter> parameters;
  // Fair: predictors that follow one another must not keep a refresh waiting.
  private final ReentrantReadWriteLock lock = new ReentrantReadWriteLock(true);
  private @Nullable OffloadedParameters offloaded;

  /// Written under the lock for writing; read by any thread without it.
  private volatile boolean isAway;

  /// Why the weights cannot be used while they are away; null while they are here.
  private @Nullable String refusal;

  /// Whether a refresh has failed half way since the last one that succeeded. A move of the weights
  /// does not change this.
  private boolean isMixed;

  private boolean wasRestored;
  private boolean closed;
  // Maps each predictor's store to the one that has replaced it since the last restore, because the
  // predictor's own holds closed arrays.
  private final Map<ParameterStore, ParameterStore> stores = new WeakHashMap<>();

  /// Guards the block's arrays; empty for a TorchScript module, whose weights native code holds.
  private final Optional<GuardedParameters> guarded;

  private LiveWeights(Block target) {
    this.target = target;
    this.parameters = target.getParameters().values();
    this.guarded =
        target instanceof SymbolBlock
            ? Optional.empty()
            : Optional.of(new GuardedParameters(target.getParameters(), this::isCovered));
    this.block =
        (Block)
            Proxy.newProxyInstance(
                target.getClass().getClassLoader(),
                kinds(target.getClass()),
                (_, method, arguments) -> call(method, arguments));
  }

  /// The block's public interfaces that extend [Block]: code that gets a [Block] may test for them.
  private static Class<?>[] kinds(Class<?> type) {
    Set<Class<?>> kinds = new LinkedHashSet<>(Set.of(Block.class));
    for (Class<?> each = type; each != null; each = each.getSuperclass()) {
      Stream.of(each.getInterfaces())
          .filter(Block.class::isAssignableFrom)
          .filter(kind -> Modifier.isPublic(kind.getModifiers()))
          .forEach(kinds::add);
    }
    return kinds.toArray(Class<?>[]::new);
  }

  /// @param block that is initialised, as after a load
  /// @throws MisuseException if the block is not initialised, or another [LiveWeights] of its parameters is
  ///     not closed
  public static LiveWeights of(Block block) {
    MisuseException.requireGiven("block", block);
    LiveWeights live = new LiveWeights(block);
    live.hold();
    Cleanup.orUndo(live::guard, live::unhold);
    return live;
  }

  private void guard() {
    if (!BlockShapes.isComplete(target)) {
      throw new MisuseException("the block must be initialised, as after Weights.load");
    }
    guarded.ifPresent(GuardedParameters::guard);
  }

  private void hold() {
    synchronized (HELD) {
      if (!Collections.disjoint(HELD, parameters)) {
        throw new MisuseException(
            "the block, or a part of it, has LiveWeights that are open: use these, or close them"
                + " first");
      }
      HELD.addAll(parameters);
    }
  }

  private void unhold() {
    synchronized (HELD) {
      parameters.forEach(HELD::remove);
    }
  }

  /// Returns the block for models and predictors. It does what the given block does, waits or refuses as this
  /// class says, and has that block's public interfaces that extend [Block].
  public Block block() {
    return block;
  }

  private @Nullable Object call(Method method, @Nullable Object @Nullable [] arguments)
      throws Throwable {
    if (method.getName().equals("equals")) {
      // Compared here: the given block's `equals` would compare that block, and not this one, with
      // the
      // argument.
      return same(block, Objects.requireNonNull(arguments)[0]);
    }
    if (arguments == null
        || arguments.length == 0
        || !(arguments[0] instanceof ParameterStore store)) {
      return invoke(method, arguments);
    }
    boolean later = isLater(method.getReturnType());
    @Nullable Object[] current = arguments.clone();
    lock.readLock().lock();
    try {
      requireWhole();
      current[0] = later ? new CurrentStore(store) : current(store);
      Object result = invoke(method, current);
      return later ? Steps.each(result, this::covered) : result;
    } finally {
      lock.readLock().unlock();
    }
  }

  private static boolean isLater(Class<?> result) {
    return Iterator.class.isAssignableFrom(result) || BaseStream.class.isAssignableFrom(result);
  }

  private <T> T covered(Supplier<T> step) {
    return within(
        lock.readLock(),
        () -> {
          requireWhole();
          return step.get();
        });
  }

  private static <T> T within(Lock lock, Supplier<T> work) {
    lock.lock();
    try {
      return work.get();
    } finally {
      lock.unlock();
    }
  }

  private void exclusively(Runnable work) {
    boolean _ =
        exclusively(() -> {
          work.run();
          return true;
        });
  }

  /// Refuses a thread within `forward`, which would wait for itself.
  private <T> T exclusively(Supplier<T> work) {
    if (lock.getReadHoldCount() > 0) {
      throw new MisuseException(
          "a prediction of this thread uses the weights: change them after forward has returned");
    }
    return within(lock.writeLock(), work);
  }

  private void requireWhole() {
    if (refusal != null) {
      throw new MisuseException(refusal);
    }
    if (isMixed) {
      throw new MisuseException(
          "a refresh of the weights failed half way, so they are mixed: refresh them again");
    }
  }

  private boolean isCovered() {
    return lock.getReadHoldCount() > 0 || lock.isWriteLockedByCurrentThread();
  }

  @SuppressWarnings("ReferenceEquality")
  private static boolean same(Object one, @Nullable Object other) {
    return one == other;
  }

  /// Returns the store to use in place of a predictor's own, which keeps the arrays that it has seen: after a
  /// restore those are closed.
  private ParameterStore current(ParameterStore store) {
    if (!wasRestored) {
      return store;
    }
    synchronized (stores) {
      return stores.computeIfAbsent(store, old -> new ParameterStore(old.getManager(), false));
    }
  }

  /// Asks for the current store at each use, for a prediction that goes on after its call: a restore may come
  /// between two of its steps.
  private final class CurrentStore extends ParameterStore {
    private final ParameterStore given;

    CurrentStore(ParameterStore given) {
      super(given.getManager(), false);
      this.given = given;
    }

    @Override
    public NDArray getValue(Parameter parameter, Device device, boolean training) {
      return current(given).getValue(parameter, device, training);
    }
  }

  private @Nullable Object invoke(Method method, @Nullable Object @Nullable [] arguments)
      throws Throwable {
    try {
      return method.invoke(target, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  /// Loads other weights into the arrays that the block has. The first 512 MiB, and tensors that are cast or
  /// cut, are loaded into other memory in parts, at most two of 512 MiB at a time, and copied; all other
  /// tensors are read straight into the arrays.
  ///
  /// If the load fails before anything was changed, predictors go on with the weights that they have.
  /// If it fails later, for example because a file ends early, the weights are mixed: the block refuses
  /// `forward` until a refresh succeeds, also after an [#offload] and a [#restore].
  ///
  /// @throws MisuseException if the weights are offloaded; else as
  ///     [Weights#load(NDManager, Block, ParameterNames, LoadOptions,
  ///     ai.djl.ndarray.types.Shape...)]
  /// @throws dev.gantry.core.TransferException if a file or device fails
  public LoadReport refresh(Weights weights, ParameterNames names, LoadOptions options) {
    MisuseException.requireGiven("weights", weights);
    MisuseException.requireGiven("names", names);
    MisuseException.requireGiven("options", options);
    return exclusively(() -> {
      requireHere();
      if (target.getParameters().isEmpty()) {
        throw new MisuseException("the block has no parameters: there is nothing to refresh");
      }
      Parameter any = target.getParameters().valueAt(0);
      TorchArrays.requireOpen(target.getParameters().keyAt(0), any);
      NDArray first = any.getArray();
      try (NDManager scope = first.getManager().newSubManager(first.getDevice())) {
        ParameterLoad load = weights.parameterLoad(scope, options);
        LoadReport report =
            Cleanup.orUndo(
                () -> LoadReport.of(load.into(target, names.rules())),
                () -> isMixed |= load.hasChanged());
        isMixed = false;
        return report;
      }
    });
  }

  /// Takes the host memory that [#offload] needs, pinned where the weights are on a GPU, so that the
  /// first offload is as fast as later ones. The memory stays until [#close].
  ///
  /// @throws dev.gantry.core.TransferException if the host has not that much memory
  public void prepareOffload() {
    exclusively(() -> {
      requireHere();
      parameters().prepare();
    });
  }

  /// Moves the weights to host memory and frees their memory on the device. `forward` is refused
  /// before the next [#restore]. Weights that are on the CPU already move within its memory.
  ///
  /// @throws MisuseException if the weights are offloaded already, or the block is a TorchScript module,
  ///     which holds its weights itself
  /// @throws dev.gantry.core.TransferException if the device fails or the host has no memory; the
  ///     weights stay where they are then
  public void offload() {
    exclusively(() -> {
      requireHere();
      parameters().offload();
      isAway = true;
      refusal = "the weights are offloaded: call restore() before you predict";
    });
  }

  /// Brings the weights back to the device that they were on, in new arrays. Predictors that you made
  /// before go on.
  ///
  /// @throws MisuseException if the weights are not offloaded
  /// @throws dev.gantry.core.TransferException if the device fails or has no room; the weights stay in
  ///     host memory then
  public void restore() {
    exclusively(() -> {
      requireOpen();
      if (!isOffloaded()) {
        throw new MisuseException("the weights are not offloaded: there is nothing to restore");
      }
      parameters().restore();
      isAway = false;
      guarded.ifPresent(GuardedParameters::guard);
      refusal = null;
      wasRestored = true;
      synchronized (stores) {
        stores.clear();
      }
    });
  }

  /// Whether the weights are offloaded: they are in host memory until [#restore].
  public boolean isOffloaded() {
    return isAway;
  }

  private OffloadedParameters parameters() {
    if (offloaded == null) {
      if (target instanceof SymbolBlock) {
        throw new MisuseException(
            "the block must hold its weights in parameters (was "
                + target.getClass().getSimpleName()
                + ", which holds them itself)");
      }
      offloaded = new OffloadedParameters(target.getParameters());
    }
    return offloaded;
  }

  private void requireOpen() {
    if (closed) {
      throw new MisuseException("these live weights are closed");
    }
  }

  private void requireHere() {
    requireOpen();
    if (isOffloaded()) {
      throw new MisuseException("the weights are offloaded: call restore() first");
    }
  }

  /// Frees the host memory of offloads. The block keeps its weights. If they are offloaded, they are lost,
  /// and `forward` stays refused.
  @Override
  public void close() {
    exclusively(() -> {
      if (closed) {
        return;
      }
      closed = true;
      if (isOffloaded()) {
        refusal =
            "the weights were offloaded when these live weights were closed, so they are gone: load"
                + " the block again, and make new live weights of it";
      }
      guarded.ifPresent(GuardedParameters::release);
      unhold();
      if (offloaded != null) {
        offloaded.close();
      }
    });
  }
}
