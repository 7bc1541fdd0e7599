// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.training.ParameterServer;
import ai.djl.training.ParameterStore;
import ai.djl.training.Trainer;
import dev.gantry.djl.internal.torch.PrivateField;

/// Removes the fence of a trainer, to show its effect.
public final class Fences {
  private static final PrivateField<ParameterStore> STORE =
      PrivateField.of(Trainer.class, "parameterStore", "ai.djl.training.ParameterStore");
  private static final PrivateField<ParameterServer> SERVER =
      PrivateField.of(ParameterStore.class, "parameterServer", "ai.djl.training.ParameterServer");

  private Fences() {}

  public static void remove(Trainer trainer) {
    SERVER.set(STORE.get(trainer), TrainerParts.of(trainer).fence().real());
  }
}
