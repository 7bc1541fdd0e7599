// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.bench;

import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.LinkCeiling;
import dev.gantry.benchmarks.harness.Turns;
import dev.gantry.benchmarks.result.Group;
import dev.gantry.benchmarks.result.Heat;
import dev.gantry.benchmarks.result.Point;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/// A set of contenders that are measured in turns.
///
/// @param files the files that are made hot or cold before each run
/// @param weight the block's share of the time
/// @param contenders makes the contenders when the block begins
record Block(
    Group group, String what, Heat heat, List<Path> files, double weight, Contenders contenders) {
  @FunctionalInterface
  interface Contenders {
    List<Entry> make() throws Exception;
  }

  /// @param ceiling the name of the ceiling to compare with; empty for none
  record Entry(
      Group group, Contender contender, long bytes, String ceiling, Map<String, Long> parameters) {
    static Entry of(Group group, Contender contender, long bytes, String ceiling) {
      return new Entry(group, contender, bytes, ceiling, Map.of());
    }

    static Entry ceiling(Contender contender, long bytes) {
      return of(Group.CEILING, contender, bytes, "");
    }
  }

  String place() {
    return what + (heat == Heat.NONE ? "" : ", " + heat);
  }

  String title() {
    return group.title() + ", " + place();
  }

  /// Whether a warm-up comes first. It does not for contenders on cold files, which have run on
  /// hot files before, nor for fresh processes, which are never warm.
  boolean warmsUp() {
    return heat != Heat.COLD && group != Group.FIRST_LOAD;
  }

  /// Returns the points that were measured so far.
  List<Point> points(List<Entry> entries, Turns turns) {
    List<Point> points = new ArrayList<>();
    for (int i = 0; i < entries.size(); i++) {
      Entry entry = entries.get(i);
      List<Double> seconds = turns.seconds(i);
      if (!seconds.isEmpty()) {
        points.add(
            new Point(
                entry.group(),
                entry.contender().name(),
                what,
                LinkCeiling.is(entry.contender()) ? Heat.NONE : heat,
                entry.bytes(),
                seconds.stream().map(time -> entry.bytes() / 1e9 / time).toList(),
                entry.ceiling(),
                entry.parameters(),
                entry.contender().note()));
      }
    }
    return points;
  }
}
