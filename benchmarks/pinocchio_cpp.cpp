// Pinocchio's C++ library behind plain functions, for pinocchio_cpp.py: one algorithm so many times on one state,
// without any Python between the calls.

#include <pinocchio/fwd.hpp>

#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/model.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/parsers/urdf.hpp>

#include <string>
#include <vector>

namespace {

struct Robot {
  pinocchio::Model model;
  pinocchio::Data data;
};

using Vector = Eigen::VectorXd;

template <typename Call>
void repeat(long count, Call call) {
  for (long k = 0; k < count; ++k) call();
}

}  // namespace

extern "C" {

void* robot_open(const char* file, int floating, int count, const char* const* locked) {
  pinocchio::Model whole;
  if (floating)
    pinocchio::urdf::buildModel(file, pinocchio::JointModelFreeFlyer(), whole);
  else
    pinocchio::urdf::buildModel(file, whole);
  std::vector<pinocchio::JointIndex> numbers;
  for (int k = 0; k < count; ++k) numbers.push_back(whole.getJointId(locked[k]));
  auto* robot = new Robot;
  robot->model = numbers.empty() ? whole : pinocchio::buildReducedModel(whole, numbers, pinocchio::neutral(whole));
  robot->data = pinocchio::Data(robot->model);
  return robot;
}

void robot_close(void* handle) { delete static_cast<Robot*>(handle); }

int robot_nq(void* handle) { return static_cast<Robot*>(handle)->model.nq; }
int robot_nv(void* handle) { return static_cast<Robot*>(handle)->model.nv; }

// Which of the works runs: 0 aba, 1 rnea, 2 crba, 3 derivatives of aba. The numbers of the last call go to `out`: nv of
// the first two, and nv x nv by columns of M's upper triangle or of da/dq.
void robot_run(void* handle, int work, long count, const double* q, const double* v, const double* tau, double* out) {
  Robot& robot = *static_cast<Robot*>(handle);
  const auto& model = robot.model;
  auto& data = robot.data;
  const Vector a = Eigen::Map<const Vector>(q, model.nq);
  const Vector b = Eigen::Map<const Vector>(v, model.nv), c = Eigen::Map<const Vector>(tau, model.nv);
  Eigen::Map<Vector> vector(out, model.nv);
  Eigen::Map<Eigen::MatrixXd> matrix(out, model.nv, work > 1 ? model.nv : 0);
  switch (work) {
    case 0:
      repeat(count, [&] { pinocchio::aba(model, data, a, b, c); });
      vector = data.ddq;
      break;
    case 1:
      repeat(count, [&] { pinocchio::rnea(model, data, a, b, c); });
      vector = data.tau;
      break;
    case 2:
      repeat(count, [&] { pinocchio::crba(model, data, a); });
      matrix = data.M;
      break;
    default:
      repeat(count, [&] { pinocchio::computeABADerivatives(model, data, a, b, c); });
      matrix = data.ddq_dq;
  }
}
}
