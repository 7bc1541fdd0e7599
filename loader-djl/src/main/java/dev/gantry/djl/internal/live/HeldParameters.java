// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.live;

import ai.djl.nn.Parameter;
import ai.djl.nn.ParameterList;
import dev.gantry.core.MisuseException;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.WeakHashMap;

/// Reserves parameters for one [LiveWeights][dev.gantry.djl.LiveWeights] until it closes: if two had the same
/// ones, predictions that wait for the first one's refresh would not wait for the second one's.
public final class HeldParameters implements AutoCloseable {
  // A weak set: whoever forgets a block and its live weights need not close these.
  private static final Set<Parameter> HELD = Collections.newSetFromMap(new WeakHashMap<>());

  private final List<Parameter> parameters;

  private HeldParameters(List<Parameter> parameters) {
    this.parameters = parameters;
  }

  /// @throws MisuseException if another [LiveWeights][dev.gantry.djl.LiveWeights] has one of them
  public static HeldParameters of(ParameterList given) {
    List<Parameter> parameters = given.values();
    synchronized (HELD) {
      if (!Collections.disjoint(HELD, parameters)) {
        throw new MisuseException(
            "the block, or a part of it, has LiveWeights that are open: use these, or close them"
                + " first");
      }
      HELD.addAll(parameters);
    }
    return new HeldParameters(parameters);
  }

  @Override
  public void close() {
    synchronized (HELD) {
      parameters.forEach(HELD::remove);
    }
  }
}
