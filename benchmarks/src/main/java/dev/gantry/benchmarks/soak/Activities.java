// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import dev.gantry.benchmarks.soak.KnownSamples.Kind;
import java.util.ArrayList;
import java.util.List;

/// All activities that run at the same time.
final class Activities {
  private Activities() {}

  static List<Activity> of(Scene scene) throws Exception {
    List<Activity> all = new ArrayList<>();
    all.add(new Loads(scene, all.size()));
    all.add(new Loads(scene, all.size()));
    all.add(new Writes(scene, all.size()));
    for (Kind kind : Kind.values()) {
      all.add(new Epochs(scene, all.size(), kind));
    }
    Saves saves = new Saves(scene, all.size());
    all.add(saves);
    all.add(new CheckpointReads(scene, all.size(), saves));
    all.add(new Refreshes(scene, all.size()));
    all.add(new RemoteReads(scene, all.size()));
    all.add(new ResidentClients(scene, all.size()));
    return all;
  }
}
